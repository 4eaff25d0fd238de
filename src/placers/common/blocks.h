// Cutting a list into contiguous blocks, one per device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"

namespace emplace {

struct BlockUnit {
  std::int64_t work = 0;
  Bytes memory = 0;
};

struct BlockDevice {
  double speed = 1;  // work per unit of time, above 0
  Bytes capacity = kUnlimited;
};

// By unit, the position of its device: never descending, and such that the largest work / speed of
// a block is the least possible (up to the rounding of doubles) with every block within its
// device's capacity. Devices may stay empty. Nothing when no cut respects the capacities.
std::optional<std::vector<std::uint32_t>> cut_into_blocks(std::span<const BlockUnit> units,
                                                          std::span<const BlockDevice> devices);

}  // namespace emplace
