// Small models of modules, for tests of exports that know those, and placements of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/presets.h"
#include "graph/graph_builder.h"
#include "graph/training.h"

#include "sim/placement.h"

#include "io/device_map.h"

namespace emplace {

// An embedding, layers of two products with a residual sum each, and a head, which shares the
// embedding's table if it is `tied`.
inline std::shared_ptr<const Problem> decoder(int layers, const std::string& cluster,
                                              bool tied = false) {
  GraphBuilder builder("decoder");
  const TensorSpec spec{.shape = {4, 4}, .dtype = DType::kFloat32};
  const auto add = [&](const std::string& name, const std::string& type, const std::string& module,
                       std::vector<TensorId> inputs) {
    return builder.add(
        {.name = name, .type = type, .inputs = std::move(inputs), .flops = 128, .module = module},
        {spec})[0];
  };
  const TensorId x = add("x", "input", "", {});
  const TensorId table = add("embed.weight", "parameter", "embed", {});
  TensorId at = add("embed/Gather", "MatMul", "embed", {x, table});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    const TensorId up = add(layer + ".up.weight", "parameter", layer + ".up", {});
    const TensorId down = add(layer + ".down.weight", "parameter", layer + ".down", {});
    const TensorId wide = add(layer + ".up/MatMul", "MatMul", layer + ".up", {at, up});
    const TensorId back = add(layer + ".down/MatMul", "MatMul", layer + ".down", {wide, down});
    at = add(layer + "/Add", "Add", layer, {at, back});
  }
  const TensorId head = tied ? table : add("head.weight", "parameter", "head", {});
  add("head/MatMul", "MatMul", "head", {at, head});
  return compile(std::make_shared<const Graph>(std::move(builder).build()),
                 std::make_shared<const Cluster>(preset_cluster(cluster)), CostMode::kAnalytic);
}

// The same with its backward pass.
inline std::shared_ptr<const Problem> trained_decoder(int layers, const std::string& cluster) {
  const auto forward = decoder(layers, cluster);
  return compile(std::make_shared<const Graph>(training_step(forward->graph())),
                 std::make_shared<const Cluster>(preset_cluster(cluster)), CostMode::kAnalytic);
}

// Ops whose names begin so are on that device; the last rule that fits counts.
inline Placement placed(const Problem& problem,
                        const std::vector<std::pair<std::string, DeviceId>>& rules) {
  Placement placement(problem.num_ops(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    for (const auto& [prefix, device] : rules) {
      if (problem.graph().op_name(op).starts_with(prefix)) placement[op] = device;
    }
  }
  return placement;
}

struct Notes {
  std::vector<std::string> said;
  ExportNote listener() {
    return [this](const std::string& text) { said.push_back(text); };
  }
};

// Two layers on two devices read a table; "" is the model itself.
inline std::shared_ptr<const Problem> shared_table(const std::string& name,
                                                   const std::string& module, bool trained) {
  GraphBuilder builder("shared table");
  const TensorSpec spec{.shape = {4, 4}, .dtype = DType::kFloat32};
  const TensorId table =
      builder.add({.name = name, .type = "parameter", .module = module}, {spec})[0];
  TensorId at = builder.add({.name = "x", .type = "input"}, {spec})[0];
  for (const std::string layer : {"layers.0", "layers.1"}) {
    at = builder.add({.name = layer + "/MatMul",
                      .type = "MatMul",
                      .inputs = {at, table},
                      .flops = 128,
                      .module = layer},
                     {spec})[0];
  }
  Graph graph = std::move(builder).build();
  if (trained) graph = training_step(graph);
  return compile(std::make_shared<const Graph>(std::move(graph)),
                 std::make_shared<const Cluster>(preset_cluster("2xp100")), CostMode::kAnalytic);
}

}  // namespace emplace
