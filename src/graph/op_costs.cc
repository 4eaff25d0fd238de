// Counts FLOPs and bytes of one call of an operator from its row and the shapes.
//
// Every rule is a closed formula, but for Einsum, which contracts operands from left to right and
// sums a label away once nothing later needs it: the cost of that order, not of the best one.
// Invariants: all arithmetic saturates, so counts are never negative, and shapes that the operator
// does not take give nothing rather than a guess. Linear in the ranks of the operands.
#include "graph/op_costs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

namespace emplace {
namespace {

using Types = std::vector<const TensorType*>;
using Flops = std::optional<std::int64_t>;

constexpr std::int64_t kTranscendental = 8;
constexpr std::int64_t kSoftmax = kTranscendental + 4;

template <class... Factors>
std::int64_t product(std::int64_t first, Factors... factors) {
  ((first = saturating_multiply(first, factors)), ...);
  return first;
}

struct Call {
  const CostRow& row;
  std::string_view type;
  const Attributes& attributes;
  const Types& in;
  const Types& out;

  const TensorType* input(std::size_t i) const { return i < in.size() ? in[i] : nullptr; }
  const TensorType* output(std::size_t i) const { return i < out.size() ? out[i] : nullptr; }
  bool has_rank(std::size_t i, std::size_t least) const {
    return input(i) != nullptr && input(i)->shape.size() >= least;
  }
  const Shape& shape(std::size_t i) const { return in[i]->shape; }
  std::int64_t in_elements(std::size_t i) const { return count_elements(in[i]->shape); }
  std::int64_t out_elements() const {
    return output(0) == nullptr ? 0 : count_elements(out[0]->shape);
  }
};

// The smallest number of bits that hold n: what a sort or a heap compares for each element.
std::int64_t bits_of(std::int64_t n) {
  return n <= 1 ? 1 : std::bit_width(static_cast<std::uint64_t>(n - 1));
}

Flops matmul_flops(const Call& call) {
  if (!call.has_rank(0, 1)) return std::nullopt;
  const auto& a = call.shape(0);
  const bool transposed = call.attributes.integer("transA", 0) != 0 && a.size() >= 2;
  const std::int64_t depth = transposed ? a[a.size() - 2] : a.back();
  return product(2, call.out_elements(), depth);
}

Flops gemm_flops(const Call& call) {
  if (!call.has_rank(0, 2)) return std::nullopt;
  const bool transposed = call.attributes.integer("transA", 0) != 0;
  const std::int64_t depth = call.shape(0)[transposed ? 0 : 1];
  const std::int64_t bias = call.input(2) != nullptr ? call.out_elements() : 0;
  return saturating_add(product(2, call.out_elements(), depth), bias);
}

// Every output element sees (input channels of a group) x kernel weights.
Flops conv_flops(const Call& call) {
  const auto weights = static_cast<std::size_t>(call.row.factor);
  if (!call.has_rank(weights, 2)) return std::nullopt;
  const auto& shape = call.shape(weights);
  const std::int64_t each = count_elements(std::span(shape).subspan(1));
  const bool biased = call.type.ends_with("Conv") && call.type != "DeformConv" &&
                      call.row.factor == 1 && call.input(2) != nullptr;
  return saturating_add(product(2, call.out_elements(), each), biased ? call.out_elements() : 0);
}

// Every input element goes to (output channels of a group) x kernel places.
Flops conv_transpose_flops(const Call& call) {
  if (!call.has_rank(1, 2)) return std::nullopt;
  const auto& shape = call.shape(1);
  const std::int64_t each = count_elements(std::span(shape).subspan(1));
  const std::int64_t bias = call.input(2) != nullptr ? call.out_elements() : 0;
  return saturating_add(product(2, call.in_elements(0), each), bias);
}

// Inputs X [steps, batch, in] (or [batch, steps, in]), W [directions, gates x hidden, in] and
// R [directions, gates x hidden, hidden]; each gate ends in a transcendental function.
Flops recurrent_flops(const Call& call) {
  if (!call.has_rank(0, 3) || !call.has_rank(1, 3) || !call.has_rank(2, 3)) return std::nullopt;
  const std::int64_t cells = product(call.shape(0)[0], call.shape(0)[1]);
  const std::int64_t weights = saturating_add(call.in_elements(1), call.in_elements(2));
  const std::int64_t gates = product(call.shape(1)[0], call.shape(1)[1], kTranscendental + 2);
  return product(cells, saturating_add(product(2, weights), gates));
}

// Contracts the operands from left to right, summing away a label once nothing later needs it. A
// label's length is the longest that an operand gives it; those of "..." are counted from the end.
class Einsum {
 public:
  static Flops flops(const Call& call) {
    std::string equation = std::string(call.attributes.text("equation"));
    std::erase(equation, ' ');
    Einsum einsum;
    if (!einsum.read(call, equation)) return std::nullopt;
    return einsum.contract();
  }

 private:
  // 'A'..'z' as they are; the k-th axis from the end of an ellipsis is k.
  static constexpr std::size_t kLabels = 128;
  static constexpr std::size_t kEllipsis = 64;
  using Labels = std::array<bool, kLabels>;

  bool read(const Call& call, const std::string& equation) {
    const std::size_t arrow = equation.find("->");
    std::array<int, kLabels> uses{};
    std::size_t at = 0;
    const std::size_t end = arrow == std::string::npos ? equation.size() : arrow;
    for (const TensorType* operand : call.in) {
      if (operand == nullptr || at > end) return false;
      const std::size_t comma = std::min(equation.find(',', at), end);
      if (!read_term(equation.substr(at, comma - at), operand->shape)) return false;
      for (std::size_t label = 0; label < kLabels; ++label) uses[label] += operands_.back()[label];
      at = comma + 1;
    }
    if (at != end + 1 || operands_.empty()) return false;
    if (arrow == std::string::npos) {
      // Without an arrow the output has what occurs once, and every axis of an ellipsis.
      for (std::size_t label = 0; label < kLabels; ++label) {
        output_[label] = label < kEllipsis ? uses[label] > 0 : uses[label] == 1;
      }
      return true;
    }
    for (const char c : equation.substr(arrow + 2)) {
      if (c != '.') output_[static_cast<std::size_t>(c) % kLabels] = true;
    }
    if (equation.find('.', arrow + 2) != std::string::npos) {
      std::fill_n(output_.begin(), kEllipsis, true);
    }
    return true;
  }

  bool read_term(const std::string& term, const Shape& shape) {
    Labels labels{};
    const std::size_t dots = term.find("...");
    const std::size_t named = dots == std::string::npos ? term.size() : term.size() - 3;
    const bool fits = dots == std::string::npos ? named == shape.size() : named <= shape.size();
    if (!fits || shape.size() - named > kEllipsis) return false;
    std::size_t axis = 0;
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        for (std::size_t k = shape.size() - named; k-- > 0;) note(labels, k, shape[axis++]);
        i += 2;
        continue;
      }
      const auto label = static_cast<unsigned char>(term[i]);
      if (label < 'A' || label > 'z') return false;
      note(labels, label, shape[axis++]);
    }
    operands_.push_back(labels);
    return true;
  }

  void note(Labels& labels, std::size_t label, std::int64_t length) {
    labels[label] = true;
    length_[label] = std::max(length_[label], length);
  }

  std::int64_t volume(const Labels& labels) const {
    std::int64_t count = 1;
    for (std::size_t label = 0; label < kLabels; ++label) {
      if (labels[label]) count = saturating_multiply(count, length_[label]);
    }
    return count;
  }

  Flops contract() const {
    Labels reached = operands_[0];
    if (operands_.size() == 1) return volume(reached);
    std::int64_t total = 0;
    for (std::size_t i = 1; i < operands_.size(); ++i) {
      for (std::size_t label = 0; label < kLabels; ++label) {
        reached[label] = reached[label] || operands_[i][label];
      }
      total = saturating_add(total, product(2, volume(reached)));
      for (std::size_t label = 0; label < kLabels; ++label) {
        bool needed = output_[label];
        for (std::size_t k = i + 1; k < operands_.size(); ++k) needed |= operands_[k][label];
        reached[label] = reached[label] && needed;
      }
    }
    return total;
  }

  std::vector<Labels> operands_;
  std::array<std::int64_t, kLabels> length_{};
  Labels output_{};
};

Flops pool_flops(const Call& call) {
  const std::int64_t kernel = count_elements(call.attributes.integers("kernel_shape"));
  return product(call.row.factor, call.out_elements(), std::max<std::int64_t>(kernel, 1));
}

Flops top_k_flops(const Call& call) {
  if (!call.has_rank(0, 1) || call.output(0) == nullptr) return std::nullopt;
  const std::int64_t axis = call.attributes.integer("axis", -1);
  const auto& shape = call.out[0]->shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) return std::nullopt;
  return product(call.in_elements(0), bits_of(shape[static_cast<std::size_t>(at)] + 1));
}

// Linear interpolation weighs two neighbours, cubic four, on each axis that changes; nearest none.
Flops resize_flops(const Call& call) {
  const std::string mode = std::string(call.attributes.text("mode"));
  if (mode.empty() || mode == "nearest") return 0;
  if (!call.has_rank(0, 1) || call.output(0) == nullptr) return std::nullopt;
  const auto& from = call.shape(0);
  const auto& to = call.out[0]->shape;
  std::int64_t each = 1;
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
    if (from[i] != to[i]) each = product(each, mode == "cubic" ? 4 : 2);
  }
  return product(2, each, call.out_elements());
}

// Four neighbours for each sample; without a ratio a bin is sampled as densely as its input, about
// two by two.
Flops roi_align_flops(const Call& call) {
  const std::int64_t ratio = call.attributes.integer("sampling_ratio", 0);
  const std::int64_t samples = ratio > 0 ? product(ratio, ratio) : 4;
  return product(call.out_elements(), samples, 8);
}

// 5 n log2 n for each transform of n points (Cooley and Tukey 1965, as benchmarks count it).
Flops fourier_flops(const Call& call) {
  if (call.output(0) == nullptr) return std::nullopt;
  const auto& shape = call.out[0]->shape;
  if (shape.size() < 3) return std::nullopt;
  std::int64_t points = shape[shape.size() - 2];
  if (call.type == "DFT") {
    const std::int64_t axis = call.attributes.integer("axis", 1);
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) return std::nullopt;
    points = shape[static_cast<std::size_t>(at)];
  }
  return product(5, call.out_elements() / 2, bits_of(points));
}

Flops determinant_flops(const Call& call) {
  if (!call.has_rank(0, 2)) return std::nullopt;
  return product(call.in_elements(0), call.shape(0).back(), 2) / 3;
}

// Every query meets every key once for the scores and once for the values. That holds however
// heads are laid out: [batch, length, hidden] or [batch, heads, length, size], or packed as
// [batch, length, heads, 2 or 3, size].
Flops attention_flops(const Call& call) {
  if (!call.has_rank(0, 3)) return std::nullopt;
  const auto& query = call.shape(0);
  const bool packed = query.size() == 5;
  const TensorType* key = packed ? nullptr : call.input(1);
  std::int64_t keys = query[1];
  if (key != nullptr && key->shape.size() >= 3) keys = key->shape[key->shape.size() == 4 ? 2 : 1];
  // What it caches, [batch, heads, total length, size], counts the keys of earlier steps too.
  const TensorType* cache = call.output(1);
  if (cache != nullptr && cache->shape.size() == 4) keys = std::max(keys, cache->shape[2]);
  const std::int64_t queries = packed ? call.in_elements(0) / 3 : call.in_elements(0);
  // The softmax counts for each score, of which there is one for each head's query and key.
  const std::int64_t heads =
      query.size() == 4 ? query[1]
      : packed          ? query[2]
               : call.attributes.integer("num_heads", call.attributes.integer("q_num_heads", 1));
  const std::int64_t length = query.size() == 4 ? query[2] : query[1];
  const std::int64_t scores = product(query[0], heads, length, keys, kSoftmax);
  return saturating_add(product(2, keys, saturating_add(queries, call.out_elements())), scores);
}

// Input [batch, length, in], weights [in, queries + keys + values].
Flops fused_attention_flops(const Call& call) {
  if (!call.has_rank(0, 3) || !call.has_rank(1, 2)) return std::nullopt;
  const auto& input = call.shape(0);
  const std::int64_t projection = product(2, call.in_elements(0), call.shape(1)[1]);
  const std::int64_t heads = call.attributes.integer("num_heads", 1);
  const std::int64_t scores = product(input[0], heads, input[1], input[1], kSoftmax);
  const std::int64_t attention = product(4, input[1], call.out_elements());
  return saturating_add(saturating_add(projection, attention), scores);
}

// The cache that it returns, [batch, heads, total length, size], says how many keys there are.
Flops group_attention_flops(const Call& call) {
  if (!call.has_rank(0, 3)) return std::nullopt;
  std::int64_t keys = call.shape(0)[1];
  const TensorType* cache = call.output(1);
  if (cache != nullptr && cache->shape.size() == 4) keys = std::max(keys, cache->shape[2]);
  const std::int64_t heads = call.attributes.integer("num_heads", 1);
  const std::int64_t scores = product(call.shape(0)[0], heads, call.shape(0)[1], keys, kSoftmax);
  return saturating_add(product(4, keys, call.out_elements()), scores);
}

// Pairs of a query and a key that it sees: all, or those up to its own place, counted from the end,
// and of these the last `window`.
std::int64_t visible_pairs(std::int64_t queries, std::int64_t keys, bool causal,
                           std::int64_t window) {
  if (!causal) return product(queries, keys);
  const std::int64_t most = window > 0 ? std::min(window, keys) : keys;
  // Of the first n queries in a square of keys.
  const auto first = [&](std::int64_t n) {
    const std::int64_t growing = std::min(n, most);
    const std::int64_t triangle =
        growing % 2 == 0 ? product(growing / 2, growing + 1) : product(growing, (growing + 1) / 2);
    return saturating_add(triangle, product(n - growing, most));
  };
  return first(keys) - first(std::max<std::int64_t>(keys - queries, 0));
}

// Queries [batch, heads, length, size], keys and values [batch, key heads, keys, size].
Flops flash_attention_flops(const Call& call) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (!call.has_rank(i, 4)) return std::nullopt;
  }
  const auto& q = call.shape(0);
  const auto& k = call.shape(1);
  const std::int64_t pairs = visible_pairs(q[2], k[2], call.attributes.integer("is_causal", 0) != 0,
                                           call.attributes.integer("window", 0));
  return product(q[0], q[1], pairs, fused_attention_pair(q[3], call.shape(2)[3]).forward);
}

Flops count_flops(const Call& call) {
  switch (call.row.rule) {
    case CostRule::kView:
    case CostRule::kMetadata:
      return 0;
    case CostRule::kPerOutput:
    case CostRule::kPick:
      return product(call.row.factor, call.out_elements());
    case CostRule::kPerInput:
      return call.input(0) == nullptr ? Flops() : product(call.row.factor, call.in_elements(0));
    case CostRule::kMatMul:
      return matmul_flops(call);
    case CostRule::kGemm:
      return gemm_flops(call);
    case CostRule::kConv:
      return conv_flops(call);
    case CostRule::kConvTranspose:
      return conv_transpose_flops(call);
    case CostRule::kRecurrent:
      return recurrent_flops(call);
    case CostRule::kEinsum:
      return Einsum::flops(call);
    case CostRule::kPool:
      return pool_flops(call);
    case CostRule::kLocalNorm:
      return product(2, call.attributes.integer("size", 1), call.out_elements());
    case CostRule::kTopK:
      return top_k_flops(call);
    case CostRule::kSort:
      return call.input(0) == nullptr ? Flops()
                                      : product(call.in_elements(0), bits_of(call.in_elements(0)));
    case CostRule::kResize:
      return resize_flops(call);
    case CostRule::kRoiAlign:
      return roi_align_flops(call);
    case CostRule::kFourier:
      return fourier_flops(call);
    case CostRule::kDeterminant:
      return determinant_flops(call);
    case CostRule::kAttention:
      return attention_flops(call);
    case CostRule::kFusedAttention:
      return fused_attention_flops(call);
    case CostRule::kGroupAttention:
      return group_attention_flops(call);
    case CostRule::kFlashAttention:
      return flash_attention_flops(call);
    case CostRule::kBody:
      return std::nullopt;
  }
  return std::nullopt;
}

// Each value once: x * x reads x once.
Bytes sum_bytes(const Types& values, std::size_t from) {
  Types distinct(values.begin() + static_cast<std::ptrdiff_t>(std::min(from, values.size())),
                 values.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  Bytes sum = 0;
  for (const TensorType* value : distinct) {
    if (value != nullptr) sum = saturating_add(sum, value->bytes);
  }
  return sum;
}

Bytes count_bytes(const Call& call) {
  const Bytes written = sum_bytes(call.out, 0);
  switch (call.row.rule) {
    case CostRule::kView:
      return 0;
    case CostRule::kMetadata:
      return written;
    case CostRule::kPick:
      // The indices are read whole; of the table, or tables, as much as is written.
      if (call.row.factor > 0) return product(3, written);
      return saturating_add(product(2, written), sum_bytes(call.in, 1));
    default:
      return saturating_add(written, sum_bytes(call.in, 0));
  }
}

}  // namespace

// Forward: the score, and the value that it weighs. Backward: the score again, the gradients of the
// value and of the weight (as wide as values), and those of the query and of the key.
PairFlops fused_attention_pair(std::int64_t key_size, std::int64_t value_size) {
  const auto of = [&](std::int64_t keys, std::int64_t values) {
    const std::int64_t width = saturating_add(product(keys, key_size), product(values, value_size));
    return saturating_add(product(2, width), kSoftmax);
  };
  return {.forward = of(1, 1), .backward = of(3, 2)};
}

std::optional<OpCost> count_cost(const CostRow& row, std::string_view type,
                                 const Attributes& attributes, const Types& inputs,
                                 const Types& outputs) {
  const Call call{row, type, attributes, inputs, outputs};
  const Flops flops = count_flops(call);
  if (!flops) return std::nullopt;
  return OpCost{
      .flops = *flops, .bytes_moved = count_bytes(call), .view = row.rule == CostRule::kView};
}

}  // namespace emplace
