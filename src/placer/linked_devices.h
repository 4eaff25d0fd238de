// Which devices can work together when not every pair of devices has a link.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"

#include "cost/problem.h"

namespace emplace {

// How long each device would take for all ops, in nanoseconds, at least 1. The reciprocal of a
// device's speed.
std::vector<double> total_durations(const Problem& problem);

// Devices, ascending, of which every one can send to every other and of which every group may use
// at least one: all of them on a fully linked cluster, else the set of the highest total speed that
// a greedy search from every device finds. Throws an Error when it finds none.
std::vector<DeviceId> mutually_linked_devices(const Problem& problem);

// Says which devices are left out, and why.
std::string unlinked_note(const Problem& problem, const std::vector<DeviceId>& used);

}  // namespace emplace
