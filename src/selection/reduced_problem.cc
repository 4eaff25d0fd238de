#include "selection/reduced_problem.h"

#include "selection/selection_problem.h"

namespace emplace {

std::int64_t reduced_cost(const ReducedProblem& problem, std::span<const std::int32_t> choice) {
  std::int64_t cost = problem.constant;
  for (std::int32_t node = 0; node < problem.num_nodes(); ++node) {
    cost = add_costs(cost, problem.nodes[node].cost[choice[node]]);
  }
  for (const ReducedEdge& edge : problem.edges) {
    const std::size_t row = static_cast<std::size_t>(choice[edge.a]) * problem.nodes[edge.b].size();
    cost = add_costs(cost, edge.table[row + choice[edge.b]]);
  }
  return cost;
}

}  // namespace emplace
