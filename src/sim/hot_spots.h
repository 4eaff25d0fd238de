// Where a step loses time: what lies on its critical chain, found by walking a timeline back from
// the end. Moves there are worth more than elsewhere.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

struct HotSpot {
  enum class Kind { kTransfer, kBusy, kWork };

  Kind kind = Kind::kWork;
  OpId op = 0;     // that waits, or works
  OpId other = 0;  // that made the tensor it waits for, or keeps its device busy
  Nanoseconds length = 0;
};

// From the end of the step to its beginning: along the graph, but where an op waited for its
// device, on with the op that ran there before it.
std::vector<HotSpot> find_hot_spots(const Problem& problem, const Placement& placement,
                                    const Timeline& timeline);

}  // namespace emplace
