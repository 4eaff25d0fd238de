// The graphs captured from PyTorch, and what the zoo's models are compared with them by.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "graph/graph.h"

#include "cost/problem.h"

#include "sim/simulator.h"

#include "io/readers.h"

namespace emplace::zoo {

inline std::string capture_path(const std::string& name) {
  return EMPLACE_SOURCE_DIR "/../shared/data/graphs/" + name + ".json.gz";
}

// Tests that compare with a capture skip where the folder beside the repository is absent.
inline bool has_capture(const std::string& name) {
  return std::filesystem::exists(capture_path(name));
}

inline Graph captured(const std::string& name) {
  return *read_model(capture_path(name)).graph;
}

// Of one phase, or of all.
inline double total_flops(const Graph& graph, std::optional<Phase> phase) {
  double flops = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (phase && graph.phase(op) != *phase) continue;
    flops += static_cast<double>(graph.flops(op).value_or(0));
  }
  return flops;
}

// Of the step with every op on one H200, by the analytic times alone so that a captured graph and
// a built one are run alike.
inline Bytes peak_on_one_device(const Graph& graph) {
  const auto problem =
      compile(std::make_shared<const Graph>(graph), read_cluster("1xh200"), CostMode::kAnalytic);
  const Simulator simulator(problem);
  return simulator.run(Placement(graph.num_ops(), 0), Schedule{}).devices[0].peak;
}

}  // namespace emplace::zoo
