// The rules that reduce a selection problem. Each keeps the cost of an optimum and says whether it
// changed anything.
#pragma once

#include <cstdint>
#include <functional>

#include "selection/reduction_graph.h"

namespace emplace {

// Whether a rule is to end where it is; asked between nodes, or edges.
using Stop = std::function<bool()>;

// Strategies that are forbidden, or that an edge forbids with everything, go; the least cost of
// every row and column of an edge is moved to its nodes, and edges that are zero then go.
bool prune_and_fold(ReductionGraph& graph, const Stop& stop);
// Strategies that use more than is left when all others use their least go.
bool prune_by_usage(ReductionGraph& graph);
// Strategies go that another one beats whatever the neighbours do. Spends from `work`.
bool remove_dominated(ReductionGraph& graph, std::span<const std::int32_t> nodes,
                      std::int64_t& work, const Stop& stop);
// A node whose strategy follows from a neighbour's becomes part of it.
bool contract_determined(ReductionGraph& graph, const Stop& stop);
// Nodes without edges, with one, or with two and no usage, become part of their neighbours.
bool peel(ReductionGraph& graph, const Stop& stop);

}  // namespace emplace
