// Attention in one op, by heads: queries [batch, heads, length, size], keys and values [batch, key
// heads, keys, size], perhaps sinks [heads]. ONNX's may have heads and sizes in one dimension, and
// a mask.
#include <algorithm>

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

namespace {

struct HeadCounts {
  Position queries = 0;
  Position keys = 0;
  const char* queries_name = "num_heads";  // the attributes that say so
  const char* keys_name = nullptr;         // nullptr: as many as queries
};

// Of 3-D tensors by attributes, of 4-D ones by their shapes.
std::optional<HeadCounts> head_counts(const Signature& op, const Shape& q, const Shape& k) {
  HeadCounts heads;
  if (op.type.starts_with("Attention")) heads.queries_name = "q_num_heads";
  if (!op.type.starts_with("MultiHead")) heads.keys_name = "kv_num_heads";
  if (q.size() != k.size() || (q.size() != 3 && q.size() != 4)) return std::nullopt;
  if (q.size() == 4) {
    heads.queries = q[1];
    heads.keys = k[1];
  } else {
    heads.queries = op.attributes.integer(heads.queries_name, 1);
    heads.keys = heads.keys_name == nullptr ? heads.queries
                                            : op.attributes.integer(heads.keys_name, heads.queries);
  }
  if (heads.queries < 1 || heads.keys < 1 || heads.queries % heads.keys != 0) return std::nullopt;
  return heads;
}

// Indices of attention's tensors over examples and key heads.
class AttentionIndices {
 public:
  AttentionIndices(Definition& op, const HeadCounts& heads, Position examples)
      : op_(op),
        heads_(heads),
        b_(op.index("b", examples)),
        k_(op.index("h", heads.keys)),
        examples_(examples) {
    const Position each = heads.queries / heads.keys;
    query_ = each == 1 ? k_ : k_ * each + op.whole("g", each);
  }

  // Nothing where the tensor does not have these heads.
  std::optional<std::vector<Index>> of(const Shape& shape, bool queries) {
    const Position heads = queries ? heads_.queries : heads_.keys;
    const Index& head = queries ? query_ : k_;
    if (shape.size() < 3 || shape[0] != examples_) return std::nullopt;
    if (shape.size() == 4) {
      if (shape[1] != heads) return std::nullopt;
      return std::vector<Index>{b_, head, whole(shape[2]), whole(shape[3])};
    }
    if (shape[2] % heads != 0) return std::nullopt;
    const Position size = shape[2] / heads;
    return std::vector<Index>{b_, whole(shape[1]), head * size + whole(size)};
  }

  // Broadcast to [examples, heads, length, keys].
  std::vector<Index> of_mask(const Shape& shape) {
    std::vector<Index> indices;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::size_t at = d + 4 - shape.size();
      if (at == 0 && shape[d] == examples_) {
        indices.push_back(b_);
      } else if (at == 1 && shape[d] == heads_.queries) {
        indices.push_back(query_);
      } else {
        indices.push_back(whole(shape[d]));
      }
    }
    return indices;
  }

  // Those that a tensor with these indices is a sum over.
  std::vector<Index> missing(const std::vector<Index>& indices) const {
    std::vector<Index> result;
    for (const Index& each : {b_, k_}) {
      const bool used = std::any_of(indices.begin(), indices.end(), [&](const Index& index) {
        return index.uses(each.terms()[0].variable);
      });
      if (!used) result.push_back(each);
    }
    return result;
  }

 private:
  Index whole(Position extent) { return op_.whole("w" + std::to_string(next_++), extent); }

  Definition& op_;
  HeadCounts heads_;
  Index b_, k_, query_;
  Position examples_;
  std::size_t next_ = 0;
};

}  // namespace

// Inputs: Q, K, V, perhaps a mask; of the gradient dY first and Y last. What was kept of earlier
// steps has shapes of its own, and is not described.
MaybeDescription attention(const Signature& signature) {
  Definition op(signature);
  const bool gradient = signature.type.ends_with("Grad");
  const std::size_t first = gradient ? 1 : 0;
  const std::size_t operands = op.num_inputs() - std::min<std::size_t>(op.num_inputs(), 2 * first);
  if (operands < 3 || operands > 4 || (operands == 4 && !signature.type.starts_with("Attention")) ||
      op.attributes().find("omitted_inputs") != nullptr || (!gradient && op.num_outputs() != 1)) {
    return std::nullopt;
  }
  const Shape& q = op.input(first);
  const auto heads = head_counts(signature, q, op.input(first + 1));
  if (!heads) return std::nullopt;
  AttentionIndices at(op, *heads, q[0]);
  // By operand: indices of a tensor like it.
  const auto like = [&](std::size_t operand, const Shape& shape) {
    return operand == 3 ? std::optional(at.of_mask(shape)) : at.of(shape, operand == 0);
  };
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const bool of_output = gradient && (i == 0 || i + 1 == op.num_inputs());
    const auto indices = like(of_output ? 0 : i - first, op.input(i));
    if (!indices || (i == first + 3 && !of_output && op.input(i).size() > 4)) return std::nullopt;
    value = value + op.in(i)(*indices);
  }
  const auto wanted = op.attributes().integers("wanted");
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    const std::size_t operand = !gradient        ? 0
                                : wanted.empty() ? i
                                                 : static_cast<std::size_t>(wanted[i]);
    const auto indices = like(operand, op.output(i));
    if (!indices) return std::nullopt;
    const auto over = at.missing(*indices);
    if (over.empty()) {
      op.out(i)(*indices) = value;
    } else {
      op.out(i)(*indices) = sum(over, value);
    }
  }
  if (q.size() == 3) {
    op.localise([heads = *heads](Piece& piece) {
      constexpr std::size_t kKeyHeads = 1;
      const Position keys = piece.box[kKeyHeads].size();
      piece.attributes.set(heads.queries_name, keys * (heads.queries / heads.keys));
      if (heads.keys_name != nullptr) piece.attributes.set(heads.keys_name, keys);
    });
  }
  return std::move(op).done();
}

// The contrib operator of this name has the input's and the weights of Q, K and V in one.
MaybeDescription attention_or_packed(const Signature& op) {
  const std::size_t first = op.type.ends_with("Grad") ? 1 : 0;
  const bool packed = op.inputs.size() > first + 1 && op.inputs[first].size() == 3 &&
                      op.inputs[first + 1].size() == 2;
  return packed ? by_example(op) : attention(op);
}

}  // namespace emplace::operators
