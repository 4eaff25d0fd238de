// Our own search for the shortest step: annealing at several scales, quickly from several starts in
// a tournament, then slowly from the best of them.
#pragma once

#include <vector>

#include <emplace/search.h>

#include "base/rng.h"

#include "placer/context.h"

namespace emplace {

// Improves on the starts (valid, at least one, best first) until the budget is spent or the
// incumbent is optimal. Everything better than the incumbent is offered to it. Needs a budget.
// Under an evaluation budget the answer depends on the generator alone, not on the number of
// threads. `share`: of a search in several parts (SearchPart), this has its first so much; the
// budget ends where that does.
void search_latency(PlaceContext& context, const Budget& budget, Rng rng,
                    const std::vector<Solution>& starts, double share = 1);

}  // namespace emplace
