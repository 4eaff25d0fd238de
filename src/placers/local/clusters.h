// Groups merged into clusters, for searches that move much at once. A cluster never spans devices,
// so the placement that it was made for stays exactly what it is.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/rng.h"

#include "placers/common/coarse_graph.h"

namespace emplace {

struct Clusters {
  std::vector<std::uint32_t> of_group;
  Csr<GroupId> groups;  // by cluster, ascending

  std::uint32_t size() const { return static_cast<std::uint32_t>(groups.size()); }
};

// The device of each group, as a part.
std::vector<std::uint32_t> devices_of_groups(const Problem& problem, const Placement& placement);

// Each group by itself.
Clusters single_groups(GroupId num_groups);

// About `wanted` clusters, none across parts (such as devices), by merging neighbours that exchange
// much, in an order that the generator decides; where that leaves too many, also by merging what is
// next to each other in the order of ops. No cluster has much more than its share of the work.
Clusters cluster_groups(const CoarseGraph& graph, const std::vector<std::uint32_t>& part_of_group,
                        std::uint32_t wanted, Rng& rng);

}  // namespace emplace
