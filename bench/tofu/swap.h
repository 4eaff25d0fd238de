// Swapping, the rival of Tofu's evaluation: one device runs the whole step in one order, and what
// does not fit in its memory lies in the host's meanwhile.
//
// What is needed farthest in the future is sent away first (Belady), what will be needed is fetched
// ahead of time; weights and optimizer state live in the host's memory but for those that are kept.
// The result is an ordinary graph on two devices, the accelerator and the host, which the simulator
// runs: both ways to the host are channels on which transfers queue.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

#include "cost/problem.h"

namespace emplace::tofu {

struct SwapSettings {
  DeviceId device = 0;              // of the problem: which does the work
  Bytes memory = 0;                 // that it has
  std::int64_t host_bandwidth = 0;  // bytes a second, each way: its share
  Nanoseconds host_latency = 0;
};

struct SwapOutcome {
  Nanoseconds step = 0;
  Bytes peak = 0;
  Bytes sent_out = 0;  // to the host
  Bytes fetched = 0;   // from it
  double kept = 0;     // share of the memory that weights and state were left in
};

// The best over several shares of memory in which weights stay; nothing where a single op does not
// fit.
std::optional<SwapOutcome> swap_step(const Problem& problem, const SwapSettings& settings);

}  // namespace emplace::tofu
