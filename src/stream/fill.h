// A first assignment of a stream's items, by filling the devices (Graham's longest processing time
// first, SIAM J. Appl. Math. 1969, with memory respected where it can be).
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/rng.h"

#include "stream/level.h"

namespace emplace {

// Long items first, in an order that is partly random, each on that of its devices which then has
// the least load of those with room. Where that overflows, also items of much memory first; the
// better of the two. Only devices that are `usable` are used; every item must have one.
std::vector<DeviceId> fill_devices(const StreamLevel& level, const std::vector<bool>& usable,
                                   Rng& rng);

}  // namespace emplace
