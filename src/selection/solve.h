// Solves strategy-selection problems: reductions that keep the optimum, then elimination of node
// after node where tables stay small (which proves the optimum), else prices and messages for a
// bound and a start, and a large-neighbourhood search until the time is over (docs/selection.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <emplace/search.h>

#include "base/rng.h"

#include "selection/selection_problem.h"

namespace emplace {

struct SelectionProgress {
  double seconds = 0;     // since the call
  bool feasible = false;  // something feasible was found
  std::int64_t cost = 0;  // of the best of those
  std::int64_t lower_bound = 0;
  std::int32_t nodes_left = 0;  // after reductions
};

struct SelectionOptions {
  // Called from any thread, by one at a time, after each improvement of the cost or the bound. This
  // is no listener of a BasicIncumbent: the search runs on the reduced problem, whose choices mean
  // nothing outside of it until the best is restored at the end, costs are not times, and a bound
  // of kForbidden (nothing is feasible) is an answer here.
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
  double first_feasible_seconds = -1;  // since the call; less than 0: never
  std::int64_t evaluations = 0;        // that were counted against the budget
};

// Obeys the budget's time, cancellation, threads and evaluations: passes of the prices and
// neighbourhoods of the walks are one each, while reductions, elimination and branching are bounded
// anyway and not counted; they look at the time, too. The same result for the same problem and
// random numbers, whatever the threads, when it ends by its evaluations; whatever the random
// numbers, too, when it ends by proof.
SelectionResult select_strategies(const SelectionProblem& problem, const Budget& budget = {},
                                  Rng rng = Rng(1), const SelectionOptions& options = {});

}  // namespace emplace
