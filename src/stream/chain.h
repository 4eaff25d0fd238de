// Linear orders of a stream's items, and cutting one into a run of consecutive items for each
// device, as pipelines of layers are cut. A good start for a search, found in almost linear time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"

#include "stream/model.h"

namespace emplace {

// A random order in which what an item reads comes before it, as far as colocation leaves such an
// order, and chains stay together (depth first).
std::vector<std::uint32_t> random_linear_order(const StreamModel& model, Rng& rng);

// Gives each device, in the order of `devices`, the longest run that its memory and a common limit
// on the load let it have, with the lowest limit that places all; what is left without one goes to
// the last device. Items that may not be on every one of `devices` go where they take least.
// `devices` must not be empty.
std::vector<DeviceId> split_order(const StreamModel& model, std::span<const std::uint32_t> order,
                                  std::span<const DeviceId> devices);

}  // namespace emplace
