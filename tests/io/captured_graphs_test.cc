// The captured training graphs and ONNX exports, where the folder beside the repository has them.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cost/problem.h"

#include "io/readers.h"

namespace emplace {
namespace {

std::vector<std::string> files_ending(const std::string& ending) {
  const std::filesystem::path folder = EMPLACE_SOURCE_DIR "/../shared/data/graphs";
  std::vector<std::string> result;
  if (!std::filesystem::is_directory(folder)) return result;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending)) result.push_back(entry.path().string());
  }
  return result;
}

TEST(CapturedGraphs, every_onnx_export_loads_with_the_cost_of_every_op_known) {
  const auto files = files_ending(".onnx.gz");
  if (files.empty()) GTEST_SKIP() << "no captured graphs beside the repository";
  for (const std::string& file : files) {
    const Model model = read_model(file);
    const Graph& graph = *model.graph;
    EXPECT_GT(graph.num_ops(), 100U) << file;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.is_source(op) || graph.is_view(op)) continue;
      EXPECT_TRUE(graph.flops(op).has_value() && graph.bytes_moved(op).has_value())
          << file << ": " << graph.op_name(op);
    }
    const auto problem = compile(model.graph, read_cluster("2xp100"));
    EXPECT_EQ(problem->cost_origin("measured").ops, 0) << file;
  }
}

TEST(CapturedGraphs, every_training_graph_compiles_with_its_measured_times) {
  const auto files = files_ending(".json.gz");
  if (files.empty()) GTEST_SKIP() << "no captured graphs beside the repository";
  for (const std::string& file : files) {
    const auto problem = compile(read_model(file).graph, read_cluster("4xh200"));
    const Graph& graph = problem->graph();
    std::int64_t updates = 0;  // which were not timed
    for (OpId op = 0; op < graph.num_ops(); ++op) updates += graph.phase(op) == Phase::kUpdate;
    EXPECT_EQ(problem->cost_origin("analytic").ops, updates) << file;
    EXPECT_GT(problem->cost_origin("measured").share, 0.85) << file;
  }
}

// FLOPs of the forward pass, counted from ONNX shapes, against those that came with the capture.
TEST(CapturedGraphs, onnx_flops_agree_with_the_capture) {
  const auto files = files_ending(".onnx.gz");
  if (files.empty()) GTEST_SKIP() << "no captured graphs beside the repository";
  for (const std::string& file : files) {
    const auto total = [](const Graph& graph) {
      double flops = 0;
      for (OpId op = 0; op < graph.num_ops(); ++op) {
        if (graph.phase(op) == Phase::kForward)
          flops += static_cast<double>(graph.flops(op).value_or(0));
      }
      return flops;
    };
    const std::string capture =
        file.substr(0, file.size() - std::string(".onnx.gz").size()) + ".json.gz";
    const double ratio = total(*read_model(file).graph) / total(*read_model(capture).graph);
    EXPECT_NEAR(ratio, 1, 0.03) << file;
  }
}

}  // namespace
}  // namespace emplace
