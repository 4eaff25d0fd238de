// Attention in one op, by heads: queries [batch, heads, length, size], keys and values [batch, key
// heads, keys, size], perhaps sinks [heads].
#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

struct Heads {
  Shape q;
  Position key_heads;
  Position keys;
};

std::optional<Heads> heads_of(const Shape& q, const Shape& k) {
  if (q.size() != 4 || k.size() != 4 || k[1] < 1 || q[1] % k[1] != 0) return std::nullopt;
  return Heads{q, k[1], k[2]};
}

// Each key head with the queries that it serves. What has no examples is a sum over them.
MaybeDescription by_heads(const Signature& signature, const Heads& heads) {
  Definition op(signature);
  const Index b = op.index("b", heads.q[0]);
  const Index k = op.index("h", heads.key_heads);
  const Position each = heads.q[1] / heads.key_heads;
  const Index query = each == 1 ? k : k * each + op.whole("g", each);
  std::size_t next = 0;
  // Nothing where the tensor is none of attention's.
  const auto indices_of = [&](const Shape& shape) -> std::vector<Index> {
    if (shape.size() == 1 && shape[0] == heads.q[1]) return {query};
    if (shape.size() < 3 || shape[0] != heads.q[0]) return {};
    if (shape[1] != heads.q[1] && shape[1] != heads.key_heads) return {};
    std::vector<Index> indices{b, shape[1] == heads.q[1] ? query : k};
    for (std::size_t d = 2; d < shape.size(); ++d) {
      indices.push_back(op.whole("w" + std::to_string(next++), shape[d]));
    }
    return indices;
  };
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const auto indices = indices_of(op.input(i));
    if (indices.empty()) return std::nullopt;
    value = value + op.in(i)(indices);
  }
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    const auto indices = indices_of(op.output(i));
    if (indices.empty()) return std::nullopt;
    if (indices.size() == 1) {
      op.out(i)(indices) = sum({b}, value);
    } else {
      op.out(i)(indices) = value;
    }
  }
  // What dropout leaves of a score follows from its place among all of them.
  if (op.attributes().real("dropout", 0) > 0) {
    op.localise([heads, each](Piece& piece) {
      constexpr std::size_t kExamples = 0;
      constexpr std::size_t kHeads = 1;
      const std::vector<std::int64_t> begin{piece.box[kExamples].begin,
                                            piece.box[kHeads].begin * each, 0, 0};
      piece.attributes.set("region_begin", begin);
      piece.attributes.set("region_shape", Shape{heads.q[0], heads.q[1], heads.q[2], heads.keys});
    });
  }
  return std::move(op).done();
}

}  // namespace

MaybeDescription flash_attention(const Signature& op) {
  if (op.inputs.size() < 3) return std::nullopt;
  const auto heads = heads_of(op.inputs[0], op.inputs[1]);
  return heads ? by_heads(op, *heads) : std::nullopt;
}

// The output's gradient comes first.
MaybeDescription flash_attention_grad(const Signature& op) {
  if (op.inputs.size() < 4) return std::nullopt;
  const auto heads = heads_of(op.inputs[1], op.inputs[2]);
  return heads ? by_heads(op, *heads) : std::nullopt;
}

}  // namespace emplace::operators
