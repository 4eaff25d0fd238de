// Why a step takes as long as it does: from its last op back to its beginning, what each moment was
// spent on. The chain is a path of the graph; every op on it waited longest for the one before it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

struct ChainSegment {
  enum class Kind {
    kCompute,      // `op` runs
    kTransfer,     // `transfer` is on its way to `op`
    kDeviceWait,   // `op` has all that it needs, but its device runs others
    kChannelWait,  // `transfer`, for `op`, is queued behind others
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  Kind kind = Kind::kCompute;
  Nanoseconds start = 0;
  Nanoseconds finish = 0;
  OpId op = 0;
  std::uint32_t transfer = kNone;  // in Timeline::transfers
  // Of a wait: how many ops or transfers were in the way, and which one for the longest; none where
  // there was only a gap. And how long nothing ran, in gaps of the device or holds of the channel.
  std::uint32_t ahead = 0;
  std::uint32_t longest_ahead = kNone;  // an op, or in Timeline::transfers
  Nanoseconds idle = 0;

  Nanoseconds length() const { return finish - start; }
};

struct CriticalChain {
  std::vector<ChainSegment> segments;  // each begins where the one before ends: from 0 to the step

  // Their sum is the step time.
  Nanoseconds compute = 0;
  Nanoseconds transfer = 0;
  Nanoseconds device_wait = 0;   // for other ops
  Nanoseconds channel_wait = 0;  // for other transfers
  Nanoseconds idle = 0;          // for gaps and holds
};

// `timeline` is what the simulator says of the placement. Of several causes that end at one moment
// the first input counts, and inputs before control dependencies.
CriticalChain critical_chain(const Problem& problem, const Placement& placement,
                             const Timeline& timeline);

}  // namespace emplace
