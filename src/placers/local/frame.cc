#include "placers/local/frame.h"

#include <optional>
#include <utility>

#include "base/check.h"

#include "bound/lower_bound.h"

#include "placer/memory.h"

namespace emplace {

void begin_search(Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const bool stream = evaluator.objective().throughput();
  evaluator.incumbent().raise(stream ? period_lower_bound(problem) : lower_bound(problem));
}

bool worth_searching(const Evaluator& evaluator, const Budget& budget) {
  if (budget.spent(evaluator.evaluations()) || evaluator.incumbent().optimal()) return false;
  const Problem& problem = evaluator.problem();
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (problem.allowed_devices(group).size() > 1) return true;
  }
  return false;
}

PlaceResult end_search(Evaluator& evaluator) {
  std::optional<Solution> best = evaluator.incumbent().best();
  EMPLACE_CHECK(best.has_value());
  PlaceResult result{.placement = std::move(best->placement),
                     .schedule = std::move(best->schedule)};
  if (!best->value.fits()) note_shortage(evaluator.problem(), evaluator, result);
  return result;
}

}  // namespace emplace
