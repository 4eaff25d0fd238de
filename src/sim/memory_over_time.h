// What each device holds at every moment of a simulated step, and what holds it: docs/simulator.md,
// Memory, read off the timeline.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

enum class MemoryUse : std::uint8_t {
  kWeights,      // parameters, buffers and what else ops keep for the whole step
  kState,        // the same of updates: an optimizer's moments
  kActivations,  // what forward ops and inputs write
  kGradients,    // what backward ops and updates write
  kReceived,     // copies of what other devices sent
  kScratch,      // temporary memory of a running op
};
inline constexpr std::size_t kMemoryUses = 6;

// "weights", "optimizer state", ...
std::string_view memory_use_name(MemoryUse use);

using MemoryByUse = std::array<Bytes, kMemoryUses>;
Bytes sum_of(const MemoryByUse& held);

struct MemoryMoment {
  Nanoseconds time = 0;
  MemoryByUse held = {};  // from then on
};

// Something that takes memory for a while.
struct MemoryHolder {
  OpId op = 0;  // that made it, or that needs it
  MemoryUse use = MemoryUse::kWeights;
  Bytes bytes = 0;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;     // of what stays: the end of what is looked at
  std::uint32_t step = 0;  // of a stream
};

struct DeviceMemory {
  std::vector<MemoryMoment> moments;  // where something changes; the first is at 0
  MemoryMoment peak;                  // the first of the largest
  std::vector<MemoryHolder> largest;  // of what is there at the peak, the largest first
};

// By device; at most so many of the largest holders each. `timeline` is what the simulator says of
// the placement; the peaks are its peaks.
std::vector<DeviceMemory> memory_over_time(const Problem& problem, const Placement& placement,
                                           const Timeline& timeline, std::size_t most_holders);

// The same of the first steps of a stream, up to and with the moment `last`; no other step may have
// entered by then.
std::vector<DeviceMemory> memory_over_stream(const Problem& problem, const Placement& placement,
                                             std::span<const Timeline> steps, Nanoseconds last,
                                             std::size_t most_holders);

// With fewer moments: of each of `parts` equal parts of the time until `end`, the one at which most
// is held. So the peak stays.
std::vector<MemoryMoment> thinned(const std::vector<MemoryMoment>& moments, Nanoseconds end,
                                  std::size_t parts);

}  // namespace emplace
