// emplace.partition/1 out.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

#include "graph/graph.h"

#include "tensor/plan.h"

namespace emplace {

// What a partition file says beside the plan.
struct PartitionFile {
  std::string cluster;
  std::vector<std::string> devices;  // by worker
  Nanoseconds step = 0;
  bool fits = false;
  Bytes moved = 0;
};

// The graph is the decomposed one that the plan is for.
std::string write_partition_json(const Graph& graph, const Descriptions& descriptions,
                                 const Plan& plan, const PartitionFile& file);

}  // namespace emplace
