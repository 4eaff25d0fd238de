// A stream of steps that overlap perfectly, as a pipeline does: its period is the largest load of
// any device or channel. Nothing is simulated over time (docs/simulator.md, Throughput).
#pragma once

#include <vector>

#include "base/units.h"

#include "sim/placement.h"

namespace emplace {

struct ThroughputResult {
  Nanoseconds period = 0;
  std::vector<Nanoseconds> device_loads;  // with communication under Overlap::kNone
  std::vector<Nanoseconds> channel_loads;
  std::vector<Bytes> memory;  // by device, everything alive at once
};

ThroughputResult throughput(const Problem& problem, const Placement& placement, Overlap overlap);

}  // namespace emplace
