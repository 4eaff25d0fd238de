// Work, memory and traffic together. For any weights of devices, channels and bytes, the weighted
// sum of what a placement loads onto them is at most what they can carry in a step, so the least
// such sum over all placements bounds the step (Lagrangian duality; Held and Karp 1971). The least
// sum is found exactly for the tensors of a spanning forest of the groups; sending the others is
// taken to be free. Good weights are found by subgradient steps; any would do.
#pragma once

#include <functional>

#include "base/units.h"

#include "cost/problem.h"

namespace emplace {

// At most the step time of every placement that fits; 0 where devices are too different from each
// other. `simple` is the quick bound, which says about how long steps are. Calls `on_improvement`
// with better and better values, while `go_on` says so.
Nanoseconds balance_bound(const Problem& problem, Nanoseconds simple,
                          const std::function<bool()>& go_on,
                          const std::function<void(Nanoseconds)>& on_improvement);

}  // namespace emplace
