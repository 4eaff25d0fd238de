// Distances along the graph, in nanoseconds, with mean durations and mean transfer times as HEFT
// has them (Topcuoglu et al. 2002; Mayer et al. 2017).
#pragma once

#include <vector>

#include "base/units.h"

#include "cost/problem.h"

namespace emplace {

// By op: up(v) = duration(v) + max over successors (transfer + up), the length of the longest path
// from v's start to the end. A control dependency carries no transfer.
std::vector<Nanoseconds> upward_ranks(const Problem& problem, bool with_transfers = true);

// By op: down(v) = max over predecessors (down + duration + transfer), the longest path to v's
// start.
std::vector<Nanoseconds> downward_ranks(const Problem& problem, bool with_transfers = true);

}  // namespace emplace
