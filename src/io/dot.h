// Graphs out, for Graphviz.
#pragma once

#include <string>

#include "sim/placement.h"

namespace emplace {

// Each op in the colour of its device. Views and sources are left out: their edges go to what they
// stand for.
std::string write_dot(const Problem& problem, const Placement& placement);

}  // namespace emplace
