#include "graph/nodes.h"

#include <algorithm>

namespace emplace {
namespace {

bool foldable(const Graph& graph, OpId op) {
  if (!graph.is_view(op) || !graph.after(op).empty()) return false;
  const auto inputs = graph.inputs(op);
  return std::all_of(inputs.begin(), inputs.end(), [&](TensorId t) { return t == inputs[0]; });
}

}  // namespace

Nodes find_nodes(const Graph& graph) {
  Nodes nodes;
  nodes.of_op.resize(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (foldable(graph, op)) {
      nodes.of_op[op] = nodes.of_op[graph.producer(graph.inputs(op)[0])];
    } else {
      nodes.of_op[op] = nodes.size();
      nodes.op.push_back(op);
    }
  }
  return nodes;
}

}  // namespace emplace
