// Schedulers: how the ops that are ready on a device are ordered, whatever placed them (Mayer et
// al. 2017). `fifo` is TensorFlow's order, `pct` takes the longest path to the sink first, `msr`
// the op whose successors matter most.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/placement.h"

namespace emplace {

struct SchedulerInfo {
  std::string key;
  std::string summary;
};

const std::vector<SchedulerInfo>& schedulers();

// Throws an Error when there is no such scheduler.
Schedule make_schedule(const Problem& problem, const Placement& placement, std::string_view key);

}  // namespace emplace
