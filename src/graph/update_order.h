// Updates overwrite their parameter where it lies, so whatever reads it must have read it by then.
#pragma once

#include <utility>
#include <vector>

#include "graph/graph.h"

namespace emplace {

// Pairs of an update and an op that comes earlier and reads the update's parameter; either may read
// it through views. Readers of the forward pass that the update comes after anyway, through the
// loss, are left out. Linear in ops and edges.
std::vector<std::pair<OpId, OpId>> updates_after_readers(const Graph& graph);

}  // namespace emplace
