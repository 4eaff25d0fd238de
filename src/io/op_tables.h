// A placed graph for general tools: GraphML for viewers of graphs, CSV for spreadsheets.
#pragma once

#include <string>

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

// Every op is a node and every (tensor, reader) an edge, with what is known of them.
std::string write_graphml(const Problem& problem, const Placement& placement);

// A row for each op: where it is, what it is, what it takes, and when it runs in the simulated
// step.
std::string write_ops_csv(const Problem& problem, const Placement& placement,
                          const Timeline& timeline);

}  // namespace emplace
