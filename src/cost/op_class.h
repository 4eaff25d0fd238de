// Coarse classes of operators: those whose kernels reach similar fractions of a device's peaks.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/graph.h"

namespace emplace {

enum class OpClass : std::uint8_t {
  kMatMul,  // matrix products, attention, recurrent cells
  kConvolution,
  kElementwise,    // one pass over the operands; also what no other class claims
  kReduction,      // sums, softmax, losses, pooling
  kNormalization,  // batch and layer norm, both directions
  kGather,         // reads only as much of its inputs as it writes
  kCopy,           // moves data without computing
  kUpdate,         // optimizer steps: read gradient and parameter, write the parameter
};

inline constexpr int kNumOpClasses = 8;

// By the operator's name, as PyTorch (aten) and ONNX have them, and the op's phase.
OpClass classify(std::string_view type, Phase phase);

}  // namespace emplace
