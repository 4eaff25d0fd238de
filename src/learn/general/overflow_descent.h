// For placements that moving the edges of blocks does not make fit: whole parts of the model change
// devices, one after the other, as long as no more memory is missing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

#include "sim/placement.h"

#include "learn/general/whole_parts.h"
#include "learn/train/environment.h"

namespace emplace::learn {

class OverflowDescent {
 public:
  explicit OverflowDescent(const Problem& problem);

  // Until it fits, the budget is spent, or so many were evaluated. The incumbent hears of all of
  // it. Only `used` devices are moved to.
  void operator()(Placement placement, std::span<const DeviceId> used, std::int64_t evaluations,
                  Environment& environment, Rng rng) const;

 private:
  // Ways to see the model as parts, by part its groups: the smallest parts last, single groups.
  std::vector<std::vector<std::vector<GroupId>>> ways_;
  std::vector<double> kept_;  // by group, bytes
};

}  // namespace emplace::learn
