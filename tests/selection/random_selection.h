// Small random selection problems, and their optima by trying everything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.h"

#include "selection/selection_problem.h"
#include "support/testing_names.h"

namespace emplace::testing {

struct RandomSelection {
  int nodes = 6;
  int strategies = 4;
  double edges = 1.4;      // for each node
  double forbidden = 0.2;  // of the entries
  bool limited = true;
  double tightness = 0.4;  // where the limit lies between the least and the most that can be used
  std::int64_t largest = 20;
};

inline SelectionProblem random_selection(const RandomSelection& shape, Rng& rng) {
  SelectionProblem problem;
  const auto cost = [&] {
    return rng.chance(shape.forbidden) ? kForbidden
                                       : static_cast<std::int64_t>(rng.below(shape.largest + 1));
  };
  std::int64_t least = 0;
  std::int64_t most = 0;
  for (int i = 0; i < shape.nodes; ++i) {
    std::vector<std::int64_t> costs(1 + rng.below(shape.strategies));
    std::vector<std::int64_t> usages(costs.size());
    for (auto& value : costs) {
      value = rng.chance(0.9) ? static_cast<std::int64_t>(rng.below(shape.largest + 1)) : cost();
    }
    for (auto& value : usages) value = static_cast<std::int64_t>(rng.below(10));
    const auto begin = static_cast<std::int64_t>(rng.below(8));
    const auto length = static_cast<std::int64_t>(rng.below(7));  // may be empty
    problem.add_node(costs, usages, {begin, begin + length});
    least += *std::min_element(usages.begin(), usages.end());
    most += *std::max_element(usages.begin(), usages.end());
  }
  const int edges = static_cast<int>(shape.edges * shape.nodes);
  for (int e = 0; e < edges; ++e) {
    const auto a = static_cast<std::int32_t>(rng.below(shape.nodes));
    const auto b = static_cast<std::int32_t>(rng.below(shape.nodes));  // a loop now and then
    const std::int32_t rows = problem.num_strategies(a);
    const std::int32_t columns = problem.num_strategies(b);
    std::vector<std::int64_t> table;
    const double kind = rng.uniform();
    for (std::int32_t i = 0; i < rows; ++i) {
      for (std::int32_t j = 0; j < columns; ++j) {
        if (kind < 0.2) {  // nearly a bijection
          table.push_back(i % columns == j ? cost() % kForbidden : kForbidden);
        } else if (kind < 0.4) {  // separable
          table.push_back(3 * i + 2 * j);
        } else {
          table.push_back(cost());
        }
      }
    }
    problem.add_edge(a, b, table);
  }
  if (shape.limited) {
    problem.set_usage_limit(
        least / 2 + static_cast<std::int64_t>(shape.tightness * static_cast<double>(most - least)));
  }
  return problem;
}

// The least cost of a feasible selection, if there is one.
inline std::optional<std::int64_t> least_cost(const SelectionProblem& problem) {
  std::optional<std::int64_t> best;
  std::vector<std::int32_t> choice(problem.num_nodes(), 0);
  while (true) {
    const SelectionValue value = evaluate(problem, choice);
    if (value.feasible && (!best || value.cost < *best)) best = value.cost;
    std::int32_t i = 0;
    while (i < problem.num_nodes() && ++choice[i] == problem.num_strategies(i)) choice[i++] = 0;
    if (i == problem.num_nodes()) return best;
  }
}

}  // namespace emplace::testing
