// Executes a graph with libtorch on the CPU, op by op: what a graph computes, not how fast. It
// serves to show that two graphs compute the same.
//
// Numbers are wider than the graph says, so that comparisons are tight: float64 for all floating
// types, int64 for all integers. Where an op's attributes or constant inputs name the shape of its
// result, that of the graph's tensor is taken instead: pieces of a split op carry the attributes of
// the whole. Beside ONNX's operators, gradients (graph/gradients.h) and updates it knows the ops
// that partitioned graphs add (kernels_parts.cc).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/graph.h"

#include "exec/sources.h"

namespace emplace::exec {

struct InterpretOptions {
  OpTarget target = {.real = torch::kDouble, .narrow = torch::kDouble};
  std::int64_t step = 0;
  bool keep = true;      // by-products of forward ops, for their gradients
  bool updates = false;  // parameters change at the end
};

// Every tensor of the graph. BatchNormalization uses the statistics of the batch where the graph
// has backward ops, else the running ones. Forward ops are differentiable where sources require
// gradients. Throws an Error that names the op when there is no kernel for it, or its tensors do
// not fit its operator.
std::vector<torch::Tensor> interpret(const Graph& graph, const SourceValue& sources,
                                     const InterpretOptions& options = {});

bool has_kernel(std::string_view type);
std::vector<std::string_view> kernel_types();  // sorted

}  // namespace emplace::exec
