// Graphs and clusters written op by op inside a test, with times in whole microseconds for devices
// of the kind "gpu", and links that carry one byte per nanosecond unless told otherwise.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph_builder.h"

#include "cost/problem.h"

namespace emplace {

class TimedGraph {
 public:
  explicit TimedGraph(const std::string& name = "timed") : builder_(name) {}

  // An op of one output.
  TensorId add(OpSpec spec, std::int64_t us, Bytes bytes = 1000) {
    spec.time_us = {{"gpu", Decimal{us, 0}}};
    return builder_.add(std::move(spec), {{.bytes = bytes}})[0];
  }
  TensorId op(const std::string& name, std::int64_t us, std::vector<TensorId> inputs,
              Bytes bytes = 1000) {
    return add({.name = name, .type = "compute", .inputs = std::move(inputs)}, us, bytes);
  }
  TensorId backward(const std::string& name, std::int64_t us, std::vector<TensorId> inputs) {
    return add(
        {.name = name, .type = "compute", .inputs = std::move(inputs), .phase = Phase::kBackward},
        us);
  }
  TensorId update(const std::string& name, std::int64_t us, std::vector<TensorId> inputs) {
    return add({.name = name, .type = "sgd", .inputs = std::move(inputs), .phase = Phase::kUpdate},
               us, 0);
  }
  TensorId view(const std::string& name, TensorId of, Phase phase = Phase::kForward) {
    return add({.name = name, .type = "view", .inputs = {of}, .phase = phase, .view = true}, 0);
  }
  TensorId source(const std::string& name, const std::string& type, Bytes bytes = 1000) {
    return builder_.add({.name = name, .type = type}, {{.bytes = bytes}})[0];
  }
  TensorId parameter(const std::string& name, Bytes bytes = 1000) {
    return source(name, "parameter", bytes);
  }

  std::shared_ptr<const Graph> build() {
    return std::make_shared<const Graph>(std::move(builder_).build());
  }

 private:
  GraphBuilder builder_;
};

// `count` devices gpu0, gpu1, ... of the kind "gpu".
inline ClusterSpec gpu_cluster(int count, Bytes memory = kUnlimited,
                               std::int64_t bandwidth = 1'000'000'000) {
  ClusterSpec spec;
  spec.name = "test cluster";
  spec.kinds.push_back({.name = "gpu",
                        .peak_flops = {{"float32", 1e12}},
                        .memory_bandwidth = 1e11,
                        .memory = 1'000'000'000,
                        .launch_us = 0});
  for (int i = 0; i < count; ++i) {
    spec.devices.push_back({.name = "gpu" + std::to_string(i), .kind = "gpu", .memory = memory});
  }
  spec.links.push_back({.bandwidth = bandwidth});
  return spec;
}

inline std::shared_ptr<const Problem> compile_timed(std::shared_ptr<const Graph> graph,
                                                    ClusterSpec spec) {
  return compile(std::move(graph), std::make_shared<const Cluster>(std::move(spec)));
}

}  // namespace emplace
