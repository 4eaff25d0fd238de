// What if: a cluster with one more device.
#pragma once

#include <optional>

#include "cluster/cluster.h"

namespace emplace {

// The cluster with another device at its end, like the last of the accelerators of which there are
// most (of all devices, where there are no accelerators), and linked as that one is. Nothing where
// a cluster cannot have another, or it is not known how that would be linked.
std::optional<Cluster> with_one_more_device(const Cluster& cluster);

}  // namespace emplace
