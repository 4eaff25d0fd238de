// Parts of a budget.
#pragma once

#include <algorithm>
#include <optional>

#include <emplace/search.h>

namespace emplace {

// What is left of the budget's time; nothing where that has no limit.
inline std::optional<double> seconds_left(const Budget& budget) {
  if (!budget.seconds) return std::nullopt;
  return std::max(0.0, *budget.seconds - budget.elapsed_seconds());
}

// For a part that begins now and takes these seconds, where time has a limit; the rest is as in the
// whole.
inline Budget budget_part(const Budget& whole, std::optional<double> seconds) {
  Budget part;
  part.seconds = whole.seconds ? seconds : std::nullopt;
  part.evaluations = whole.evaluations;
  part.cancelled = whole.cancelled;
  part.threads = whole.threads;
  return part;
}

// For a selection problem (selection/solve.h). Where plans are counted, a solver that cannot prove
// its answer takes so many evaluations of its own, so that another run finds the same.
inline Budget selection_budget(const Budget& whole, std::optional<double> seconds) {
  constexpr std::int64_t kEvaluations = 1000;
  Budget part = budget_part(whole, seconds);
  if (part.evaluations) part.evaluations = kEvaluations;
  return part;
}

}  // namespace emplace
