// What if: a cluster whose devices or links are faster, or larger, than they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace emplace {

// Factors of what a cluster has; 1: as it is.
struct ClusterScale {
  double compute = 1;           // FLOP/s of devices
  double memory_bandwidth = 1;  // of devices' own memory
  double speed = 1;             // of everything that devices do, also where times are measured
  double memory = 1;            // capacity of devices
  double bandwidth = 1;         // of links
  double latency = 1;           // of links: less is better

  // Texts of "bandwidth=2" or "bandwidth=2,memory=1.5". Throws an Error when one is not like that.
  static ClusterScale parse(const std::vector<std::string>& texts);

  // Whether it changes figures that only estimates of op times use.
  bool changes_estimates() const { return compute != 1 || memory_bandwidth != 1; }
  std::string to_string() const;  // "bandwidth x2, memory x1.5"; empty where nothing changes

  friend bool operator==(const ClusterScale&, const ClusterScale&) = default;
};

// A factor by the name that users write.
struct ScaleField {
  std::string_view name;
  double ClusterScale::*value;
};
const std::vector<ScaleField>& scale_fields();

// The cluster with that changed, and said in its name.
Cluster scaled(const Cluster& cluster, const ClusterScale& scale);

}  // namespace emplace
