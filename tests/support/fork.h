// Two branches that meet: 210 us on one device, 111 us on two, of which 1 us is a transfer.
#pragma once

#include <memory>
#include <utility>

#include "support/timed_graph.h"

namespace emplace {

// left.weight, left.mm, right.mm, join.
inline std::shared_ptr<const Graph> fork_graph(Bytes persistent = 0) {
  TimedGraph graph("fork");
  const TensorId weight = graph.parameter("left.weight");
  const TensorId left = graph.add({.name = "left.mm",
                                   .type = "mm",
                                   .inputs = {weight},
                                   .persistent_bytes = persistent,
                                   .module = "left"},
                                  100);
  const TensorId right = graph.add({.name = "right.mm",
                                    .type = "mm",
                                    .inputs = {},
                                    .persistent_bytes = persistent,
                                    .module = "right"},
                                   100);
  graph.add({.name = "join", .type = "add", .inputs = {left, right}, .module = "head"}, 10, 4);
  return graph.build();
}

inline std::shared_ptr<const Problem> fork_on(ClusterSpec cluster, CompileOptions options = {}) {
  return compile(fork_graph(), std::make_shared<const Cluster>(std::move(cluster)), options);
}

inline constexpr Nanoseconds kForkOnOne = 210'000;
inline constexpr Nanoseconds kForkOnTwo = 111'000;
inline constexpr Nanoseconds kForkBound = 110'000;

}  // namespace emplace
