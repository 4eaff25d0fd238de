// The arithmetic on shapes that exporters leave in a model (Shape, Gather, Concat, ... in front of
// a Reshape), computed, so that shape inference sees its results.
#pragma once

#include <optional>
#include <vector>

#include "io/onnx_value.h"

namespace emplace {

// The first output's contents, where the operator is one of those that such arithmetic uses and its
// inputs are known; `inputs` are by position, nullptr where omitted or unknown.
std::optional<SmallTensor> fold_node(const onnx::NodeProto& node,
                                     const std::vector<const OnnxValue*>& inputs);

}  // namespace emplace
