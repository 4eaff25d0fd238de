// What no placement can beat, and whether any can fit: proven without a search.
#pragma once

#include <optional>
#include <string>

#include "base/units.h"

#include "cost/problem.h"

namespace emplace {

struct LowerBound {
  Nanoseconds step = 0;  // or period
  std::string reason;    // "critical path", "total work" or "largest group"
};

// At most the step time of every placement: the longer of
// - the critical path with every op on its fastest device, transfers free;
// - the total work spread over the devices as well as their speeds allow.
// With `fitting_only`, of every placement that fits: devices too small for an op's inputs and
// outputs then do not count for it.
LowerBound lower_bound(const Problem& problem, bool fitting_only = true);

// At most the period of every placement's stream, whatever overlaps: the total work spread over the
// devices, or the longest group of ops that must share one.
LowerBound period_lower_bound(const Problem& problem);

// How a device's memory is counted (docs/simulator.md): over time, or all at once in a stream.
enum class MemoryRule { kStep, kStream };

// Why no placement can fit, with the shortfall; nothing when that is not proven.
std::optional<std::string> why_nothing_fits(const Problem& problem,
                                            MemoryRule rule = MemoryRule::kStep);

}  // namespace emplace
