// Makes placements fit: what is on devices that are too full leaves for those with room, the
// nearest along the modules first, so that it is mostly the edges of blocks that move.
#pragma once

#include <span>
#include <vector>

#include "sim/placement.h"

#include "learn/train/environment.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

class MemoryRepair {
 public:
  // Moves units of several ops, so that a parameter takes along what reads it.
  explicit MemoryRepair(const Problem& problem);

  // Evaluates what it makes, until it fits, nothing moves any more, the budget is spent, or it has
  // tried `tries` times. The incumbent hears of all of it. Only `used` devices are moved to.
  void operator()(Placement placement, std::span<const DeviceId> used, int tries,
                  Environment& environment) const;

 private:
  UnitGraph units_;
  std::vector<double> kept_;    // by unit, bytes
  std::vector<double> places_;  // by unit, along the modules
};

}  // namespace emplace::learn
