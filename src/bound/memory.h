// What must be in memory at once, whatever the placement and the schedule.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "bound/lower_bound.h"

namespace emplace {

struct MemoryNeeds {
  std::vector<Bytes> of_group;  // the most that a group's device must hold at once
  bool possible(const Problem& problem, GroupId group, DeviceId device) const {
    return of_group[group] <= problem.cluster().device(device).memory;
  }
};

MemoryNeeds memory_needs(const Problem& problem, MemoryRule rule);

}  // namespace emplace
