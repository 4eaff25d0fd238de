// What a step runs: ops, and with each of them the views that only rename what it makes. A view
// that waits for its first input alone starts and ends when that is made, on the same device.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

#include "graph/graph.h"

namespace emplace {

struct Nodes {
  std::vector<std::uint32_t> of_op;  // of a folded view: the node that makes what it shows
  std::vector<OpId> op;              // by node, ascending

  std::uint32_t size() const { return static_cast<std::uint32_t>(op.size()); }
};

Nodes find_nodes(const Graph& graph);

}  // namespace emplace
