// A partition's cuts of weights and inputs, as the runtimes take them that divide tensors.
#pragma once

#include <string>

#include "graph/graph.h"

#include "io/device_map.h"
#include "io/partition_file.h"

namespace emplace {

// For DTensor: the mesh, and for every parameter and input a placement for each of its dimensions.
std::string write_dtensor_plan(const Graph& graph, const SavedPartition& partition,
                               const ExportNote& note);

// For JAX: the mesh, and for every parameter and input a PartitionSpec.
std::string write_partition_specs(const Graph& graph, const SavedPartition& partition,
                                  const ExportNote& note);

}  // namespace emplace
