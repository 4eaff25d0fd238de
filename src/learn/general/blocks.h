// Parts of a graph that a policy decides about anew while all else stays where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"

#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Of at most half of the units.
class Blocks {
 public:
  explicit Blocks(const UnitGraph& units);

  // One at random, with as many units as `size_at_random` says, or a module, a layer or all that
  // reads one parameter. Not empty.
  std::vector<UnitId> draw(Rng& rng) const;
  // So many units that follow each other along one of the lines through the graph
  // (learn/units/coordinates.h).
  std::vector<UnitId> draw(std::size_t size, Rng& rng) const;
  // Such a block that the unit is in.
  std::vector<UnitId> draw_around(UnitId unit, Rng& rng) const;
  // From one to a quarter of the units; half of that is as likely as twice that.
  std::size_t size_at_random(Rng& rng) const;

 private:
  std::vector<std::vector<UnitId>> lines_;
  std::vector<std::vector<std::vector<UnitId>>> ways_;  // to see the model as parts
};

// By device, how much a policy leans to it when it decides about the block of a placement [unit]:
// to one of the devices in use where most of the block is not, and more or less as much as the
// distance of the furthest slice counts at first (learn/nn/device_scores.h). Leaning less, it would
// mostly repeat what is there.
std::vector<float> leaning_elsewhere(const std::vector<UnitId>& block,
                                     const std::vector<DeviceId>& placement,
                                     const std::vector<DeviceId>& used, std::size_t devices,
                                     Rng& rng);
// The same to this device.
std::vector<float> leaning_to(DeviceId device, std::size_t devices, Rng& rng);

}  // namespace emplace::learn
