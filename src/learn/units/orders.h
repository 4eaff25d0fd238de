// In which order policies that decide one unit after the other go through them.
#pragma once

#include <vector>

#include "learn/units/unit_graph.h"

namespace emplace::learn {

// As units are numbered: topological, but for what merged ops leave.
std::vector<UnitId> topological_order(const UnitGraph& units);

// Units that exchange much are near each other, backward ops beside the forward ops whose results
// they read: the leaves of a tree of merges, in which the set that takes the least time joins the
// one that it exchanges most with; of the two, the one with the earliest unit comes first.
std::vector<UnitId> locality_order(const UnitGraph& units);

}  // namespace emplace::learn
