// Graphs as text, for tests that look at every edge of a backward pass.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "graph/graph.h"

namespace emplace {

// "a" for the first output of op a, "a:1" for its second.
inline std::string tensor_text(const Graph& graph, TensorId tensor) {
  const OpId op = graph.producer(tensor);
  const auto outputs = graph.outputs(op);
  const auto at = std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin();
  return at == 0 ? std::string(graph.op_name(op)) : fmt::format("{}:{}", graph.op_name(op), at);
}

// "name = Type(input, ...) [2, 3] [4]" with the shapes of the outputs.
inline std::string op_text(const Graph& graph, OpId op) {
  std::vector<std::string> inputs;
  for (const TensorId tensor : graph.inputs(op)) inputs.push_back(tensor_text(graph, tensor));
  std::string text =
      fmt::format("{} = {}({})", graph.op_name(op), graph.type(op), fmt::join(inputs, ", "));
  for (const TensorId tensor : graph.outputs(op)) {
    text += fmt::format(" [{}]", fmt::join(graph.shape(tensor), ", "));
  }
  return text;
}

// Everything but the forward pass, in order.
inline std::vector<std::string> backward_text(const Graph& graph) {
  std::vector<std::string> lines;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward) lines.push_back(op_text(graph, op));
  }
  return lines;
}

}  // namespace emplace
