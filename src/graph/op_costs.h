// What an operator costs, counted from its shapes: floating-point operations and bytes moved.
//
// Operators are those of ONNX and of com.microsoft; a gradient's cost follows from its forward op's
// (graph/gradients.h). A multiplication with an addition counts two, a comparison, a division or a
// square root one, a transcendental function (exp, log, tanh, erf, pow, ...) eight; the numbers of
// the operators that are made of those are in the table of op_cost_table.cc. Integer arithmetic of
// quantised operators counts the same. Bytes are those of all inputs and outputs, each once, except
// that an operator that picks elements (Gather, Slice) reads only what it writes, one that asks
// only for a shape reads nothing, and a view moves nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/tensor_type.h"

namespace emplace {

enum class CostRule {
  kView,       // nothing; the output is the first input under another shape
  kMetadata,   // writes its output from shapes alone
  kPerOutput,  // `factor` for each element of the first output
  kPerInput,   // `factor` for each element of the first input
  kPick,       // as kPerOutput, reading only what it writes
  kMatMul,     // also of integers: contracts the first input's last axis
  kGemm,
  kConv,  // `factor` is the position of the weights
  kConvTranspose,
  kRecurrent,  // `factor` gates
  kEinsum,
  kPool,       // `factor` for each element under the kernel
  kLocalNorm,  // over `size` neighbours
  kTopK,
  kSort,
  kResize,
  kRoiAlign,
  kFourier,
  kDeterminant,
  kAttention,       // queries, keys and values are its first inputs
  kFusedAttention,  // projects its input to those first
  kGroupAttention,  // queries, keys and values, with a cache
  kFlashAttention,  // by heads; only pairs that a causal mask and its window leave
  kBody,            // If, Loop, Scan: costed by their bodies
};

struct CostRow {
  std::string_view domain;
  std::string_view type;
  CostRule rule;
  int factor = 0;
  bool keeps_shape = false;  // the first output is as the first input, where no schema says so
};

// Nothing when the operator is not known. The domain is "" or "ai.onnx" for ONNX itself.
const CostRow* find_cost_row(std::string_view domain, std::string_view type);

struct OpCost {
  std::int64_t flops = 0;
  Bytes bytes_moved = 0;
  bool view = false;
  Bytes persistent_bytes = 0;  // weights that a body holds
  Bytes temp_bytes = 0;        // the largest set of outputs of one op of a body
};

// Inputs and outputs by position, nullptr where omitted. Nothing when the shapes are not what the
// operator takes.
std::optional<OpCost> count_cost(const CostRow& row, std::string_view type,
                                 const Attributes& attributes,
                                 const std::vector<const TensorType*>& inputs,
                                 const std::vector<const TensorType*>& outputs);

// Of fused attention, for each pair of a query and a key that it sees.
struct PairFlops {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};
PairFlops fused_attention_pair(std::int64_t key_size, std::int64_t value_size);

}  // namespace emplace
