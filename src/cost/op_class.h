// The class of an operator by its name alone. Shapes refine it (cost/op_work.h).
#pragma once

#include <string_view>

#include "cluster/cost_curves.h"
#include "graph/graph.h"

namespace emplace {

struct OperatorKind {
  OpClass op_class = OpClass::kElementwise;
  bool gradient = false;  // belongs to the backward pass by its name

  friend bool operator==(const OperatorKind&, const OperatorKind&) = default;
};

// As PyTorch (aten) and ONNX name operators, and gradients after either: "convolution_backward",
// "ConvGrad", "ConvWeightGrad". Any op of phase update is an update.
OperatorKind classify(std::string_view type, Phase phase);

}  // namespace emplace
