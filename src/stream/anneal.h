// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 1983) of a stream's assignment at
// one level. The energy is the sum over resources of (load / best period)^power: a high power sees
// only the largest loads, a low one all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "base/units.h"

#include "stream/level.h"

namespace emplace {

// How good an assignment is: what makes it invalid first, then what does not fit, then the period.
struct StreamValue {
  std::int64_t missing_links = 0;
  Bytes overflow = 0;
  Nanoseconds period = 0;

  // clang-tidy 14 takes what the compiler writes here for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const StreamValue&, const StreamValue&) = default;
};

StreamValue stream_value(const StreamLevel& level, const std::vector<DeviceId>& device_of);

struct AnnealPlan {
  int log2_power = 6;
  double start_temperature = 1;  // energy is about 1 per device that is as loaded as the period
  double end_temperature = 0.01;
  std::int64_t moves = 0;  // to propose
  // The energy of an overflow by a device's share of all memory, and of a missing link.
  double violation_energy = 50;
  // Until an assignment is valid and fits, loads hardly count.
  bool fit_first = false;
  Nanoseconds enough = 0;  // a fitting assignment of this period ends the annealing
};

// Asked every kMovesBetweenAsking moves with the number made since; true ends the annealing.
using StopCheck = std::function<bool(std::int64_t moves)>;
inline constexpr std::int64_t kMovesBetweenAsking = 4096;

// Replaces `device_of` by the best assignment met, and returns its value; never a worse one.
StreamValue anneal(const StreamLevel& level, const AnnealPlan& plan, Rng& rng,
                   const StopCheck& stop, std::vector<DeviceId>& device_of);

}  // namespace emplace
