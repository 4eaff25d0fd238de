// What the benchmarks run on: files beside the repository, and clusters made to a graph's measure.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace emplace::bench {

inline constexpr const char* kGraphFolder = "../shared/data/graphs";

// The files below `folder` whose path ends so, sorted; none where there is no such folder.
std::vector<std::string> files_below(const std::string& folder, std::string_view ending);

// The captured graphs.
std::vector<std::string> captured_graphs();

// "a", "b" and "c" are made for the graph; anything else is a cluster file or a preset. Devices are
// of the kind that the graph was measured on, eight times as slow, or p100 with analytic times
// where it was not; links are of 12 GB/s and 10 us, each ordered pair its own. `peak` is what the
// graph needs on one device alone.
//   a  four devices, each with 40 % of the peak
//   b  four devices, each with 120 %
//   c  two devices, the second twice as slow, each with 60 %
std::shared_ptr<const Cluster> cluster_for(const std::shared_ptr<const Graph>& graph,
                                           const std::string& name);

// So many devices of that kind, each with this much of the peak.
std::shared_ptr<const Cluster> equal_devices(const std::shared_ptr<const Graph>& graph,
                                             std::size_t count, std::int64_t memory_percent);

// What everything on one such device needs, in the order in which ops become ready.
Bytes single_device_peak(const std::shared_ptr<const Graph>& graph);

// Of this process, since its start or the last call of forget_peak_memory.
double peak_gigabytes();
void forget_peak_memory();

}  // namespace emplace::bench
