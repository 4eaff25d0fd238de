// What placers take before they look at the clock.
#pragma once

#include <string>
#include <vector>

#include <emplace/search.h>

#include "graph/graph.h"

#include "placer/run.h"

namespace emplace {

// For people, before the runs begin: those that a graph of so many ops will keep for longer than
// the budget's time.
std::vector<std::string> runs_beyond_time(const std::vector<PlacerRun>& runs, OpId num_ops,
                                          const Budget& budget);

}  // namespace emplace
