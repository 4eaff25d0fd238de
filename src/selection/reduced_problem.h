// The problem that is left when what can be decided beforehand has been: nodes that stand for
// several (so that their usage changes over time), at most one edge between two nodes, and only the
// times that can matter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace emplace {

// How much a node uses from time `begin` up to `end`, beyond the least that it must; one strategy
// at least uses 0. A node's pieces are in order and do not overlap once reductions are done.
struct UsagePiece {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::vector<std::int64_t> usage;  // by strategy
};

struct ReducedNode {
  std::vector<std::int64_t> cost;
  std::vector<UsagePiece> pieces;
  std::int32_t size() const { return static_cast<std::int32_t>(cost.size()); }
};

struct ReducedEdge {
  std::int32_t a = 0;
  std::int32_t b = 0;
  std::vector<std::int64_t> table;  // row-major over (strategy of a, strategy of b)
  std::int32_t other(std::int32_t node) const { return node == a ? b : a; }
};

struct ReducedProblem {
  std::vector<ReducedNode> nodes;
  std::vector<ReducedEdge> edges;
  std::vector<std::vector<std::int32_t>> edges_of;  // of each node
  std::vector<std::int64_t> slack;                  // what the pieces may add up to at each time
  std::int64_t constant = 0;                        // of the cost
  bool infeasible = false;                          // proven; the rest means nothing then

  std::int32_t num_nodes() const { return static_cast<std::int32_t>(nodes.size()); }
  bool limited() const { return !slack.empty(); }
};

// Saturates at kForbidden.
std::int64_t reduced_cost(const ReducedProblem& problem, std::span<const std::int32_t> choice);

}  // namespace emplace
