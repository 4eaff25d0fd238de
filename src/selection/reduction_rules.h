// The rules that reduce a selection problem. Each keeps the cost of an optimum and says whether it
// changed anything.
#pragma once

#include <cstdint>

#include "selection/reduction_graph.h"

namespace emplace {

// Strategies that are forbidden, or that an edge forbids with everything, go; the least cost of
// every row and column of an edge is moved to its nodes, and edges that are zero then go.
bool prune_and_fold(ReductionGraph& graph);
// Strategies that use more than is left when all others use their least go.
bool prune_by_usage(ReductionGraph& graph);
// Strategies go that another one beats whatever the neighbours do. Spends from `work`.
bool remove_dominated(ReductionGraph& graph, std::span<const std::int32_t> nodes,
                      std::int64_t& work);
// A node whose strategy follows from a neighbour's becomes part of it.
bool contract_determined(ReductionGraph& graph);
// Nodes without edges, with one, or with two and no usage, become part of their neighbours.
bool peel(ReductionGraph& graph);

}  // namespace emplace
