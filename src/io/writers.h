// Writing what people edit and other programs read. Each returns the file's text; io/file.h stores
// it.
#pragma once

#include <string>

#include "cluster/cluster.h"

#include "cost/problem.h"

#include "sim/timeline.h"

#include "io/placement_file.h"

namespace emplace {

// An emplace.cluster/1 file meant to be edited: it spells out the figures of every kind used, and
// read back it gives the same devices, kinds and links.
std::string write_cluster_yaml(const ClusterSpec& spec);

// emplace.placement/1.
std::string write_placement_json(const Problem& problem, const PlacementFile& file);

// The timeline in the Trace Event format that Perfetto and chrome://tracing open: a track for each
// device and each channel.
std::string write_trace_json(const Problem& problem, const Placement& placement,
                             const Timeline& timeline);

// The graph for Graphviz, each op in the colour of its device. Views and sources are left out:
// their edges go to what they stand for.
std::string write_dot(const Problem& problem, const Placement& placement);

}  // namespace emplace
