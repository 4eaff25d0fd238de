// Parts of a graph as the specifications that GraphBuilder takes, for passes that make a new graph
// of an old one.
#pragma once

#include "graph/graph.h"
#include "graph/graph_builder.h"

namespace emplace {

TensorSpec spec_of_tensor(const Graph& graph, TensorId tensor);
// All of the op but what it reads, writes and waits for.
OpSpec spec_of_op(const Graph& graph, OpId op);

}  // namespace emplace
