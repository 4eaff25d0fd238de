// What a stream of steps comes to (docs/simulator.md, Throughput): simulated, with so many steps in
// flight that more would bring nothing, or by the loads of devices and channels alone, as if steps
// overlapped perfectly and everything were alive at once.
#pragma once

#include <vector>

#include "base/units.h"

#include "sim/placement.h"
#include "sim/simulator.h"

namespace emplace {

struct ThroughputResult {
  Nanoseconds period = 0;
  std::vector<Nanoseconds> device_loads;  // with communication under Overlap::kNone
  std::vector<Nanoseconds> channel_loads;
  std::vector<Bytes> memory;  // by device: the peak, or everything alive at once
  int in_flight = 0;          // steps; 0: nothing was simulated
  // Where the stream was simulated:
  Nanoseconds latency = 0;      // of a step
  Nanoseconds load = 0;         // the largest, which no number of steps in flight beats
  bool memory_limited = false;  // there was no room for another step
};

// Whether the rule of the problem's model is to simulate: with overlap, unless the model counts all
// that a step writes as alive at once.
bool stream_is_simulated(const Problem& problem, Overlap overlap);

// By the loads alone.
ThroughputResult throughput(const Problem& problem, const Placement& placement, Overlap overlap);

// By the model's rule.
ThroughputResult stream_throughput(const Problem& problem, const Placement& placement,
                                   const ReadyOrder& order, Overlap overlap);

}  // namespace emplace
