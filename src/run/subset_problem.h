// A problem on a few of its devices: the same ops, fewer places.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"

#include "cost/problem.h"

#include "sim/placement.h"

namespace emplace {

using DeviceSet = std::vector<DeviceId>;  // ascending

// The cluster without its other devices.
std::shared_ptr<const Cluster> cluster_of(const Cluster& cluster, const DeviceSet& devices);

// The problem on `devices`, which may run every op, alone, compiled as the whole was. A placement
// of it lasts as long, and takes as much memory, as in the whole one.
std::shared_ptr<const Problem> compile_on(const std::shared_ptr<const Problem>& whole,
                                          const DeviceSet& devices);

// Between the numbers that devices have in the whole cluster and in one of `devices` alone. To the
// latter, nothing where the placement uses others.
Placement to_whole(const Placement& placement, const DeviceSet& devices);
std::optional<Placement> to_subset(const Placement& placement, const DeviceSet& devices);

// The devices that have an op.
DeviceSet used_devices(const Problem& problem, const Placement& placement);

}  // namespace emplace
