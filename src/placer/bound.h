// What no placement can beat, and whether any can fit: proven without a search.
#pragma once

#include <optional>
#include <string>

#include "base/units.h"
#include "cost/problem.h"

namespace emplace {

struct LowerBound {
  Nanoseconds step = 0;
  std::string reason;  // "critical path" or "total work"
};

// At most the step time of every placement that fits: the longer of
// - the critical path with every op on its fastest device, transfers free;
// - the total work spread over the devices as well as their speeds allow.
// Devices too small for an op's inputs and outputs do not count for it.
LowerBound lower_bound(const Problem& problem);

// Why no placement can fit, with the shortfall; nothing when that is not proven.
std::optional<std::string> why_nothing_fits(const Problem& problem);

}  // namespace emplace
