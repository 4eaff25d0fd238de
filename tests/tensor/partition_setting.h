// A graph on a few devices, ready to be partitioned.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"

#include "graph/graph_builder.h"

#include "tensor/decompose.h"
#include "tensor/evaluate.h"
#include "tensor/methods/all.h"
#include "tensor/topology.h"

namespace emplace {

inline std::shared_ptr<const Cluster> equal_devices(int count, Bytes memory = 1LL << 34,
                                                    std::int64_t bandwidth = 10'000'000'000) {
  ClusterSpec spec;
  spec.name = "equal";
  for (int i = 0; i < count; ++i) {
    spec.devices.push_back({.name = fmt::format("gpu{}", i), .kind = "v100", .memory = memory});
  }
  spec.links.push_back({.bandwidth = bandwidth, .latency = 1000});
  return std::make_shared<const Cluster>(std::move(spec));
}

// A few products and sums over matrices, with branches that meet again.
inline Graph random_graph(Rng& rng, std::int64_t size = 8) {
  GraphBuilder builder("random");
  const TensorSpec matrix{.shape = {size, size}, .dtype = DType::kFloat32};
  std::vector<TensorId> made = builder.add({.name = "x", .type = "input"}, {matrix});
  for (int i = 0; i < 3; ++i) {
    const TensorId from = made[rng.below(made.size())];
    const std::string name = fmt::format("op{}", i);
    switch (rng.below(3)) {
      case 0: {
        const TensorId weight =
            builder.add({.name = name + ".w", .type = "parameter"}, {matrix})[0];
        made.push_back(
            builder.add({.name = name, .type = "MatMul", .inputs = {from, weight}}, {matrix})[0]);
        break;
      }
      case 1:
        made.push_back(builder.add({.name = name,
                                    .type = "Transpose",
                                    .inputs = {from},
                                    .attributes = {{"perm", std::vector<std::int64_t>{1, 0}}}},
                                   {matrix})[0]);
        break;
      default:
        made.push_back(builder.add({.name = name,
                                    .type = rng.below(2) == 0 ? "Add" : "Softmax",
                                    .inputs = {from, made.back()}},
                                   {matrix})[0]);
    }
  }
  return std::move(builder).build();
}

struct Setting {
  explicit Setting(Graph made, int devices, const CoarseningOptions& coarsening = {},
                   Bytes memory = 1LL << 34)
      : Setting(std::move(made), equal_devices(devices, memory), coarsening) {}
  Setting(Graph made, std::shared_ptr<const Cluster> on_what, const CoarseningOptions& coarsening)
      : graph(std::make_shared<const Graph>(decompose(made))),
        cluster(std::move(on_what)),
        problem(compile(graph, cluster)),
        on(workers_on(*problem)),
        input(*graph, coarsening) {}

  PlanSolution find(const std::string& method, const Budget& budget = {},
                    const std::vector<Plan>& starts = {}) const {
    PartitionContext context(input, problem, on, PlanCosts{}, starts);
    return context.evaluate(
        all_partition_methods().make(MethodSpec::parse(method))->find(context, budget, Rng(1)));
  }

  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  std::shared_ptr<const Problem> problem;
  WorkerDevices on;
  PartitionInput input;
};

}  // namespace emplace
