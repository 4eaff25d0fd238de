// Models whose streams have a rule of their own.
#pragma once

#include "graph/graph.h"

namespace emplace {

// What the reader of dnn-partitioning's files gives as a graph's source; graph JSON keeps it.
inline constexpr const char* kDnnPartitioningSource = "dnn-partitioning workload";

// Whether a stream keeps everything that a step writes alive at once, as dnn-partitioning counts
// memory: a node's size stands for all that its device holds, however many steps are in flight.
inline bool counts_all_alive(const Graph& graph) {
  return graph.source() == kDnnPartitioningSource;
}

}  // namespace emplace
