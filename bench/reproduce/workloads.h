// What the papers' comparisons run on: their models at their sizes, on their hardware and on
// devices of today.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace emplace::bench {

struct Workload {
  std::string name;  // of published ones "SYSTEM: WORKLOAD"
  std::string model;
  // A preset; "unequal" for 50 devices of five speeds (Mayer); or, where it is empty, `devices`
  // equal ones of today, each with a part of what the model needs on one device alone.
  std::string cluster = {};
  std::size_t devices = 4;
  std::int64_t memory_percent = 100;
  // Placements that each run evaluates: as many as Post had, or fewer where ops are so many that
  // learning from them takes long.
  std::int64_t evaluations = 2400;

  std::string description() const;
};

std::shared_ptr<const Cluster> cluster_of(const Workload& workload,
                                          const std::shared_ptr<const Graph>& graph);

// The published ones (zoo/published.h), then our own.
const std::vector<Workload>& workloads();
const Workload& workload(const std::string& name);

}  // namespace emplace::bench
