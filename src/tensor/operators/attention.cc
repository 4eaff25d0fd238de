// Attention in one op, by heads: queries [batch, heads, length, size], keys and values [batch, key
// heads, keys, size], perhaps sinks [heads]. ONNX's and the contrib operators may have heads and
// sizes in one dimension, masks, and keys and values of earlier steps.
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

// What attention reads, by position: of three operators.
enum class AttentionRole : std::uint8_t {
  kQuery,
  kKey,
  kValue,
  kMask,      // broadcast to scores
  kPast,      // keys or values of earlier steps: [examples, key heads, length, size]
  kExamples,  // something of each example: lengths, positions
  kWhole,     // the same for all
  kBias,      // of queries, keys and values in one dimension
};

std::vector<AttentionRole> operands_of(std::string_view type) {
  using enum AttentionRole;
  if (type.starts_with("MultiHead")) {
    return {kQuery, kKey, kValue, kBias, kExamples, kMask, kPast, kPast};
  }
  if (type.starts_with("GroupQuery")) {
    return {kQuery, kKey,   kValue, kPast,     kPast, kExamples,
            kWhole, kWhole, kWhole, kExamples, kMask};
  }
  return {kQuery, kKey, kValue, kMask, kPast, kPast, kExamples};
}

// Of the inputs that are given; nothing where there are more, or where keys or values are left out,
// which are then in one tensor with queries.
std::optional<std::vector<AttentionRole>> operands_given(const Signature& op, std::size_t count) {
  const std::vector<AttentionRole> all = operands_of(op.type);
  const auto omitted = op.attributes.integers("omitted_inputs");
  std::vector<AttentionRole> given;
  for (std::size_t i = 0; i < all.size() && given.size() < count; ++i) {
    const bool there =
        std::find(omitted.begin(), omitted.end(), static_cast<std::int64_t>(i)) == omitted.end();
    if (there) given.push_back(all[i]);
    if (!there && i < 3) return std::nullopt;
  }
  return given.size() == count && count >= 3 ? std::optional(given) : std::nullopt;
}

// Indices of attention's tensors over examples and key heads.
class AttentionIndices {
 public:
  using Indices = std::optional<std::vector<Index>>;

  AttentionIndices(Definition& op, const HeadCounts& heads, Position examples, bool cuts_heads)
      : op_(op),
        heads_(heads),
        b_(op.index("b", examples)),
        k_(cuts_heads ? op.index("h", heads.keys) : op.whole("h", heads.keys)),
        examples_(examples),
        cuts_heads_(cuts_heads) {
    const Position each = heads.queries / heads.keys;
    query_ = each == 1 ? k_ : k_ * each + op.whole("g", each);
  }

  // Nothing where the tensor has another shape.
  Indices of(AttentionRole operand, const Shape& shape) {
    switch (operand) {
      case AttentionRole::kQuery:
        return of_heads(shape, heads_.queries, query_);
      case AttentionRole::kKey:
      case AttentionRole::kValue:
        return of_heads(shape, heads_.keys, k_);
      case AttentionRole::kPast:
        return shape.size() == 4 ? of_heads(shape, heads_.keys, k_) : std::nullopt;
      case AttentionRole::kMask:
        return shape.size() <= 4 ? Indices(of_mask(shape)) : std::nullopt;
      case AttentionRole::kExamples:
        if (shape.empty() || shape[0] != examples_) return std::nullopt;
        return whole_but(shape, b_);
      case AttentionRole::kWhole:
      case AttentionRole::kBias:
        return whole_but(shape, std::nullopt);
    }
    return std::nullopt;
  }

  // Those that a tensor with these indices is a sum over.
  std::vector<Index> missing(const std::vector<Index>& indices) const {
    std::vector<Index> result;
    const auto add = [&](const Index& each) {
      const bool used = std::any_of(indices.begin(), indices.end(), [&](const Index& index) {
        return index.uses(each.terms()[0].variable);
      });
      if (!used) result.push_back(each);
    };
    add(b_);
    if (cuts_heads_) add(k_);
    return result;
  }

 private:
  Indices of_heads(const Shape& shape, Position heads, const Index& head) {
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

  std::vector<Index> whole_but(const Shape& shape, const std::optional<Index>& first) {
    std::vector<Index> indices;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      indices.push_back(d == 0 && first ? *first : whole(shape[d]));
    }
    return indices;
  }

  Index whole(Position extent) { return op_.whole("w" + std::to_string(next_++), extent); }

  Definition& op_;
  HeadCounts heads_;
  Index b_, k_, query_;
  Position examples_;
  bool cuts_heads_;
  std::size_t next_ = 0;
};

// By input. Of a gradient dY first and Y last, and in between what has one: queries, keys, values
// and ONNX's mask.
std::optional<std::vector<AttentionRole>> read_by(const Signature& op, bool gradient) {
  if (!gradient) return operands_given(op, op.inputs.size());
  if (op.inputs.size() < 2) return std::nullopt;
  const auto given = operands_given(op, op.inputs.size() - 2);
  const auto last = AttentionRole::kMask;
  if (!given || given->size() > 4 || (given->size() == 4 && given->back() != last)) {
    return std::nullopt;
  }
  std::vector<AttentionRole> read{AttentionRole::kQuery};
  read.insert(read.end(), given->begin(), given->end());
  read.push_back(AttentionRole::kQuery);
  return read;
}

// By output: Y, then present keys and values.
std::optional<std::vector<AttentionRole>> written_by(const Signature& op, bool gradient) {
  std::vector<AttentionRole> written;
  const auto wanted = op.attributes.integers("wanted");
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (!gradient) {
      written.push_back(i == 0 ? AttentionRole::kQuery : AttentionRole::kPast);
      continue;
    }
    const std::size_t operand = wanted.empty() ? i : static_cast<std::size_t>(wanted[i]);
    if (operand > 3) return std::nullopt;
    written.push_back(operands_of("Attention")[operand]);
  }
  const bool left_out = op.attributes.find("omitted_outputs") != nullptr;
  const bool more = !gradient && op.outputs.size() > 3;
  return left_out || more ? std::nullopt : std::optional(written);
}

}  // namespace

// By examples and heads; where there is a bias of all three, of which no part is one head's, by
// examples alone.
MaybeDescription attention(const Signature& signature) {
  const bool gradient = signature.type.ends_with("Grad");
  const std::size_t first = gradient ? 1 : 0;
  const auto read = read_by(signature, gradient);
  const auto written = written_by(signature, gradient);
  if (!read || !written) return std::nullopt;
  Definition op(signature);
  const Shape& q = op.input(first);
  const auto heads = head_counts(signature, q, op.input(first + 1));
  if (!heads) return std::nullopt;
  const bool cuts_heads =
      std::find(read->begin(), read->end(), AttentionRole::kBias) == read->end();
  AttentionIndices at(op, *heads, q[0], cuts_heads);
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const auto indices = at.of((*read)[i], op.input(i));
    if (!indices) return std::nullopt;
    value = value + op.in(i)(*indices);
  }
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    const auto indices = at.of((*written)[i], op.output(i));
    if (!indices) return std::nullopt;
    const auto over = at.missing(*indices);
    if (over.empty()) {
      op.out(i)(*indices) = value;
    } else {
      op.out(i)(*indices) = sum(over, value);
    }
  }
  if (q.size() == 3 && cuts_heads) {
    op.localise([heads = *heads](Piece& piece) {
      constexpr std::size_t kKeyHeads = 1;
      const Position keys = piece.box[kKeyHeads].size();
      piece.attributes.set(heads.queries_name, keys * (heads.queries / heads.keys));
      if (heads.keys_name != nullptr) piece.attributes.set(heads.keys_name, keys);
    });
  }
  return std::move(op).done();
}

namespace {

// Whether these are an input, the weights of Q, K and V in one, and their bias at most. Masks and
// what was kept of earlier steps have shapes of their own.
bool is_packed_alone(const Signature& op, std::size_t first, std::size_t operands) {
  if (operands < 2 || operands > 3) return false;
  const Shape bias{op.inputs[first + 1][1]};
  return operands == 2 || op.inputs[first + 2] == bias;
}

}  // namespace

// The contrib operator of this name has the input's and the weights of Q, K and V in one.
MaybeDescription attention_or_packed(const Signature& op) {
  const bool gradient = op.type.ends_with("Grad");
  const std::size_t first = gradient ? 1 : 0;
  const bool packed = op.inputs.size() > first + 1 && op.inputs[first].size() == 3 &&
                      op.inputs[first + 1].size() == 2;
  if (!packed) return attention(op);
  // A gradient has dY first and Y last.
  const std::size_t operands = op.inputs.size() - (gradient ? 2 : 0);
  return is_packed_alone(op, first, operands) ? by_example(op) : std::nullopt;
}

}  // namespace emplace::operators
