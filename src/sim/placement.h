// A placement: a device for every op; and in which order a device takes the ops that are ready.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

#include "cost/problem.h"

namespace emplace {

using Placement = std::vector<DeviceId>;  // by op

// FIFO when there are no priorities; else the ready op of the highest priority, then lowest index.
struct Schedule {
  std::vector<std::int64_t> priorities;  // by op, or empty

  bool fifo() const { return priorities.empty(); }
};

// Throws an Error that names the op when the placement has the wrong size, breaks colocation, uses
// a device that the op may not, or sends a tensor where there is no link.
void check_placement(const Problem& problem, const Placement& placement);

// Gives each group's device to its ops.
Placement expand_groups(const Problem& problem, const std::vector<DeviceId>& device_of_group);

}  // namespace emplace
