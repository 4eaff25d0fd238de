// Two accelerators and a CPU that is as fast.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/timed_graph.h"

namespace emplace {

inline ClusterSpec cluster_with_cpu(Bytes memory = kUnlimited) {
  ClusterSpec cluster = gpu_cluster(2, memory);
  cluster.kinds.push_back(cluster.kinds[0]);
  cluster.kinds.back().name = "cpu";
  cluster.devices.push_back({.name = "cpu0", .kind = "cpu", .memory = kUnlimited});
  return cluster;
}

// Ops of 100 us, op0, op1, ..., that need nothing of each other, and hold so many bytes each.
inline std::shared_ptr<const Problem> ops_with_cpu(const std::vector<Bytes>& held,
                                                   Bytes memory = kUnlimited,
                                                   CompileOptions options = {}) {
  GraphBuilder builder("ops");
  for (std::size_t i = 0; i < held.size(); ++i) {
    builder.add({.name = "op" + std::to_string(i),
                 .type = "mm",
                 .inputs = {},
                 .time_us = {{"gpu", Decimal{100, 0}}, {"cpu", Decimal{100, 0}}},
                 .persistent_bytes = held[i]},
                {{.bytes = 1}});
  }
  return compile(std::make_shared<const Graph>(std::move(builder).build()),
                 std::make_shared<const Cluster>(cluster_with_cpu(memory)), options);
}

// Fits the accelerators in one way only, 300 + 300 and the rest, which quick placers do not find.
inline std::shared_ptr<const Problem> packing_problem() {
  return ops_with_cpu({200, 300, 300, 200, 200}, 602);
}

}  // namespace emplace
