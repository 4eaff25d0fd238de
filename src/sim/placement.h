// A placement: a device for every op; and in which order a device takes the ops that are ready.
#pragma once

#include <cstdint>
#include <vector>

#include <emplace/simulate.h>

#include "base/ids.h"

#include "cost/problem.h"

namespace emplace {

// Throws an Error that names the op when the placement has the wrong size, breaks colocation, uses
// a device that the op may not, or sends a tensor where there is no link.
void check_placement(const Problem& problem, const Placement& placement);

// Gives each group's device to its ops.
Placement expand_groups(const Problem& problem, const std::vector<DeviceId>& device_of_group);

}  // namespace emplace
