// Where a step loses time: what lies on its critical chain, found by walking a run back from the
// end. Moves there are worth more than elsewhere.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/simulator.h"

namespace emplace {

// From the end of the step to its beginning: along the graph, but where an op waited for its
// device, on with the op that ran there before it. The workspace is as a run left it that noted
// times (Simulator::hot_spots).
std::vector<HotSpot> read_hot_spots(const Problem& problem, const SimProgram& program,
                                    const Placement& placement, Simulator::Workspace& workspace);

}  // namespace emplace
