// Solves strategy-selection problems: reductions that keep the optimum, then elimination of node
// after node where tables stay small (which proves the optimum), else prices and messages for a
// bound and a start, and a large-neighbourhood search until the time is over (docs/selection.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "selection/selection_problem.h"

namespace emplace {

struct SelectionProgress {
  double seconds = 0;
  bool feasible = false;  // something feasible was found
  std::int64_t cost = 0;  // of the best of those
  std::int64_t lower_bound = 0;
  std::int32_t nodes_left = 0;  // after reductions
};

struct SelectionOptions {
  double seconds = 60;
  int threads = 1;
  std::uint64_t seed = 1;
  std::function<bool()> cancelled = nullptr;
  // Called from any thread, by one at a time.
  std::function<void(const SelectionProgress&)> progress = nullptr;
  // To begin from; need not be feasible.
  std::optional<std::vector<std::int32_t>> start = std::nullopt;
};

struct SelectionResult {
  // Always one valid index a node; the least bad that was found where nothing feasible was.
  std::vector<std::int32_t> strategies;
  std::int64_t cost = kForbidden;
  bool feasible = false;
  // No feasible selection costs less. kForbidden: it is proven that there is none.
  std::int64_t lower_bound = 0;
  bool proven = false;                 // that the cost is the least, or that nothing is feasible
  double first_feasible_seconds = -1;  // less than 0: never
};

// The same result for the same problem, whatever the seed and the threads, when it ends by proof.
SelectionResult select_strategies(const SelectionProblem& problem,
                                  const SelectionOptions& options = {});

}  // namespace emplace
