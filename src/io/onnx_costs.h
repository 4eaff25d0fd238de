// What an ONNX operator costs, counted from its shapes: floating-point operations and bytes moved.
//
// A multiplication with an addition counts two, a comparison, a division or a square root one, a
// transcendental function (exp, log, tanh, erf, pow, ...) eight; the numbers of the operators that
// are made of those are in the table of onnx_cost_table.cc. Integer arithmetic of quantised
// operators counts the same. Bytes are those of all inputs and outputs, each once, except that an
// operator that picks elements (Gather, Slice) reads only what it writes, one that asks only for a
// shape reads nothing, and a view moves nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/onnx_value.h"

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
  kBody,            // If, Loop, Scan: costed by their bodies (onnx_walk.h)
};

struct CostRow {
  std::string_view domain;
  std::string_view type;
  CostRule rule;
  int factor = 0;
  bool keeps_shape = false;  // the first output is as the first input, where no schema says so
};

// Nothing when the operator is not known.
const CostRow* find_cost_row(std::string_view domain, std::string_view type);

struct OnnxCost {
  std::int64_t flops = 0;
  Bytes bytes_moved = 0;
  bool view = false;
  Bytes persistent_bytes = 0;  // weights that a body holds
  Bytes temp_bytes = 0;        // the largest set of outputs of one op of a body
};

// Inputs and outputs by position, nullptr where omitted; those given are known. Nothing when the
// shapes are not what the operator takes.
std::optional<OnnxCost> cost_of_node(const CostRow& row, const onnx::NodeProto& node,
                                     const std::vector<const OnnxValue*>& inputs,
                                     const std::vector<const OnnxValue*>& outputs);

}  // namespace emplace
