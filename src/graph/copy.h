// Parts of a graph as the specifications that GraphBuilder takes, for passes that make a new graph
// of an old one.
#pragma once

#include <functional>

#include "graph/graph.h"
#include "graph/graph_builder.h"

namespace emplace {

// By the tensor's shape; what is sent of it where it has none.
Bytes size_in_bytes(const Graph& graph, TensorId tensor);
TensorSpec spec_of_tensor(const Graph& graph, TensorId tensor);
// All of the op but what it reads, writes and waits for.
OpSpec spec_of_op(const Graph& graph, OpId op);

// The same graph, op by op, with whatever `change` does to each.
Graph changed_copy(const Graph& graph, const std::function<void(OpId, OpSpec&)>& change);

}  // namespace emplace
