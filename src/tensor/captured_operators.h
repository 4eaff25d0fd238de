// Steps that were captured from PyTorch have its operators (aten's). Here they get ONNX's, which
// have descriptions, kernels and costs: `addmm` becomes Gemm, a transposed view of its weights its
// transB; `convolution_backward` becomes two gradients and a sum. The graph computes the same.
//
// Operators that have no counterpart stay as they are, and so do those whose attributes the graph
// does not say, as captures did not before they had any.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace emplace {

struct TranslatedGraph {
  Graph graph;
  // By tensor of the captured graph: the one of the same value, where there is one.
  std::vector<std::optional<TensorId>> tensors;
};

TranslatedGraph translate_captured(const Graph& graph);

// Whether the operator is one of PyTorch's that get another name where their attributes are known.
bool is_captured_operator(std::string_view type);

}  // namespace emplace
