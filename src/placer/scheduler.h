// Schedulers: how the ops that are ready on a device are ordered, whatever placed them (Mayer et
// al. 2017). `fifo` is TensorFlow's order, `pct` takes the longest path to the sink first, `msr`
// the op whose successors matter most. Each makes its order from the placement alone.
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

// In place of a scheduler's key. The placer's own order of ops where it has one, else FIFO:
inline constexpr std::string_view kOwnSchedule = "own";
// Of the placer's own order and every scheduler's, the best for the placement that it made:
inline constexpr std::string_view kBestSchedule = "best";

// Throws an Error when there is no such scheduler.
void require_scheduler(std::string_view key);
Schedule make_schedule(const Problem& problem, const Placement& placement, std::string_view key);

}  // namespace emplace
