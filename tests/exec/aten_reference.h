// PyTorch's operators as libtorch itself computes them, for captured graphs: what their translation
// is compared with. Those that tests need.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

#include "exec/kernel.h"

namespace emplace::exec {

// One op of a captured graph.
struct AtenCall {
  const Graph& graph;
  OpId op;
  Tensors inputs;

  Integers list(std::string_view name) const {
    const auto given = graph.attributes(op).integers(name);
    return {given.begin(), given.end()};
  }
  std::int64_t integer(std::string_view name, std::int64_t otherwise = 0) const {
    return graph.attributes(op).integer(name, otherwise);
  }
  double real(std::string_view name, double otherwise = 0) const {
    return graph.attributes(op).real(name, otherwise);
  }
  bool given(std::string_view name) const { return graph.attributes(op).find(name) != nullptr; }
  Shape out(std::size_t i = 0) const {
    const auto shape = graph.shape(graph.outputs(op)[i]);
    return {shape.begin(), shape.end()};
  }
  Tensor other() const {
    return inputs.size() > 1 ? inputs[1] : torch::scalar_tensor(real("other"), torch::kDouble);
  }
  std::array<bool, 3> mask() const {
    const Integers given = list("output_mask");
    return {given.at(0) != 0, given.at(1) != 0, given.at(2) != 0};
  }
};

// Results that are not asked for are left out, as captures do.
Tensors compute_aten(const AtenCall& call);

}  // namespace emplace::exec
