// Which of a cluster's devices are worth trying when only a few may be used.
#pragma once

#include <vector>

#include "cost/problem.h"

#include "run/subset_problem.h"

namespace emplace {

struct DeviceSubsets {
  std::vector<DeviceSet> sets;  // most promising first
  // Whether every placement on so few devices that fits has its like on one of the sets, so that
  // what bounds all of them bounds every such placement.
  bool complete = true;
};

// Sets of `count` devices that may run every op, at most `most` of them. Those that differ in
// nothing that matters (speed, memory, links, channels, what ops allow) count once; those whose
// memory is proven too small are left out where others are not. Where there are too many, those
// that could be fastest are taken, the one with most memory and the one with the fastest links.
// Throws an Error when no `count` devices may run every op.
DeviceSubsets device_subsets(const Problem& problem, DeviceId count, std::size_t most = 8);

// `devices` and as many more, the fastest, as make `count`.
DeviceSet grown_to(const Problem& problem, DeviceSet devices, DeviceId count);

}  // namespace emplace
