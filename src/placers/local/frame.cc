#include "placers/local/frame.h"

#include <optional>
#include <utility>

#include "base/check.h"

#include "placer/memory.h"

#include "bound/lower_bound.h"

namespace emplace {

void begin_search(PlaceContext& context) {
  // Whoever runs several searches knows it already.
  if (context.incumbent().bound().step > 0) return;
  // Of simulated steps: executed ones may take less.
  if (context.evaluator().measures()) return;
  context.incumbent().raise(lower_bound(context.problem(), context.objective()));
}

bool worth_searching(const PlaceContext& context, const Budget& budget) {
  if (budget.spent(context.evaluations()) || context.incumbent().optimal()) return false;
  const Problem& problem = context.problem();
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (problem.allowed_devices(group).size() > 1) return true;
  }
  return false;
}

PlaceResult end_search(PlaceContext& context) {
  std::optional<Solution> best = context.incumbent().best();
  EMPLACE_CHECK(best.has_value());
  PlaceResult result{.placement = std::move(best->placement),
                     .schedule = std::move(best->schedule)};
  if (!best->value.fits()) note_shortage(context.problem(), context.evaluator(), result);
  return result;
}

}  // namespace emplace
