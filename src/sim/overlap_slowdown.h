// Overlap is not free: a device computes more slowly while it sends or receives. The simulator
// lets both go on at full speed (docs/simulator.md); this says what a placement's step becomes if
// they do not. Placers do not see it; partition methods do, where it is asked for.
#pragma once

#include <memory>

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

// At most; what is beyond is a mistake.
inline constexpr double kMostOverlapSlowdown = 100;

// While a transfer from or to its device is carried, an op takes `factor` times as long (at least
// 1; 1.13 as Galvatron measured it on GPUs). An op that lasts d alone and computes beside transfers
// for u nanoseconds of its span then lasts d + (1 - 1 / factor) u. How ops and transfers then meet
// is found by simulating until no op's length changes by more than a thousandth, at most 20 times.
Timeline with_slow_overlap(const std::shared_ptr<const Problem>& problem,
                           const Placement& placement, const Schedule& schedule, double factor);

}  // namespace emplace
