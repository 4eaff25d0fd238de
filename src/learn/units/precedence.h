// Which units run before which others: a directed acyclic graph, as Placeto's pools and turns need
// it.
#pragma once

#include <vector>

#include "base/csr.h"

#include "learn/units/unit_graph.h"

namespace emplace::learn {

// What a unit waits for. Two kinds of edges of a UnitGraph do not count, so that there is never a
// cycle:
// * from a parameter or another source, and views of it, to its readers, where colocation binds it
//   to an op that computes: an update, which runs at the end, would else come before everything
//   that reads the parameter. A unit of a parameter and its update is where the update is.
// * on cycles that colocation or merging leaves all the same, from a unit whose first op comes
//   later to one whose first op comes earlier. Units of group_to_size_acyclic have such cycles
//   only where colocation makes them.
struct Precedence {
  Csr<UnitId> predecessors;  // ascending
  Csr<UnitId> successors;
  std::vector<UnitId> order;  // every unit once, after its predecessors; as they first run
};

Precedence precedence_of(const UnitGraph& units);

}  // namespace emplace::learn
