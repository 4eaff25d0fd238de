// From what a policy proposes to what is used: rounded, and made to fit.
#pragma once

#include <span>

#include "base/rng.h"

#include "sim/placement.h"

#include "learn/general/memory_repair.h"
#include "learn/general/rounding.h"
#include "learn/train/environment.h"

namespace emplace::learn {

class Finish {
 public:
  explicit Finish(const Problem& problem) : repair_(problem), rounding_(problem) {}

  // The placement, and what it is rounded to, each moved about until it fits. The incumbent hears
  // of all of it. Only `used` devices are moved to.
  void operator()(const Placement& placement, std::span<const DeviceId> used,
                  Environment& environment) const;
  // Where the best does not fit: longer, from it and what it is rounded to, on all devices. Not
  // where steps are measured, which takes too long. Whether it has tried.
  bool insist(Environment& environment, const Rng& rng) const;

 private:
  MemoryRepair repair_;
  Rounding rounding_;
};

}  // namespace emplace::learn
