// A stream of steps, simulated over time: steps enter while at most so many are in flight
// (docs/simulator.md, Throughput).
#pragma once

#include <vector>

#include "base/units.h"

#include "sim/placement.h"
#include "sim/simulator.h"
#include "sim/stream_plan.h"
#include "sim/timeline.h"

namespace emplace {

struct StreamRun {
  int in_flight = 1;            // at most
  Nanoseconds period = 0;       // from one step's finish to the next one's, on average
  Nanoseconds latency = 0;      // of a step, from its entry to its finish: the longest
  std::vector<Bytes> peaks;     // by device
  Bytes overflow = 0;           // bytes above capacity, summed over devices
  bool memory_limited = false;  // of a chosen one: there was no room for another step
  // The first steps, where they were asked for: spans and transfers alone, all of which finished.
  std::vector<Timeline> steps = {};
  // When each of them entered, and at the end when the first did that is not among them: before
  // that, they are all that happens.
  std::vector<Nanoseconds> entered = {};

  bool fits() const { return overflow == 0; }
};

// The stream of one placement, for any number of steps in flight.
class StreamSimulator {
 public:
  // The placement must be valid. Throws an Error where steps are too long for a stream of them.
  StreamSimulator(const Problem& problem, const Placement& placement, const ReadyOrder& order);

  // With the first `recorded` steps.
  StreamRun run(int in_flight, int recorded = 0) const;
  // No stream of the placement has a shorter period: the largest load of any device or channel.
  Nanoseconds largest_load() const { return plan_.largest_load; }

 private:
  const Problem& problem_;
  const ReadyOrder& order_;
  StreamPlan plan_;
};

// The most steps in flight that are tried.
inline constexpr int kMostInFlight = 64;

// The stream with the fewest steps in flight whose period is at most a thousandth above the
// shortest that was found; of those that fit, if one step alone does. Tries one more step in flight
// after the other, until the load allows no better, memory is too small, or several more brought
// nothing.
StreamRun choose_in_flight(const StreamSimulator& stream);

}  // namespace emplace
