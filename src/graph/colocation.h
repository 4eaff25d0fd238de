// Which ops must share a device (spec: "What must be on one device"): a view and the producer of
// its first input; an update and the parameter that it updates; ops with one `colocate` name.
#pragma once

#include <vector>

#include "base/csr.h"
#include "base/ids.h"

#include "graph/graph.h"

namespace emplace {

// A partition of the ops into groups, numbered by their lowest op.
struct Colocation {
  std::vector<GroupId> group_of;  // by op
  Csr<OpId> ops;                  // by group, ascending

  GroupId num_groups() const { return static_cast<GroupId>(ops.size()); }
};

Colocation find_colocation(const Graph& graph);

// Numbers the classes of any labelling of the ops (labels need not be dense) by their lowest op.
Colocation number_groups(const std::vector<std::uint32_t>& labels);

}  // namespace emplace
