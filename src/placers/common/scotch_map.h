// Scotch's static mapping of a coarse graph on devices, behind one call; shared by the placers that
// use Scotch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"

#include "placers/common/coarse_graph.h"

namespace emplace {

// What Scotch should know of the devices.
struct ScotchTarget {
  std::vector<double> shares;     // of the work, by device; they add up to 1
  std::vector<double> distances;  // by pair (row-major, symmetric): the cost of a byte; or empty
};

// A device (by its index in the target) for every group. `imbalance` is how much of its share a
// device may have too much. Same rng, same result. Throws an Error when Scotch reports one.
std::vector<std::int32_t> scotch_map(const CoarseGraph& graph, const ScotchTarget& target,
                                     double imbalance, Rng rng);

}  // namespace emplace
