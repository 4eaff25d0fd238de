// Captured training graphs and ONNX exports of the same models.
#include <string>

#include <gtest/gtest.h>

#include "cost/problem.h"

#include "io/readers.h"
#include "support/captures.h"

namespace emplace {
namespace {

TEST(CapturedGraphs, onnx_exports_load_with_the_cost_of_every_op_known) {
  for (const char* name : kOnnxExports) {
    const Model model = read_model(onnx_export_path(name));
    const Graph& graph = *model.graph;
    EXPECT_GT(graph.num_ops(), 100U) << name;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.is_source(op) || graph.is_view(op)) continue;
      EXPECT_TRUE(graph.flops(op).has_value() && graph.bytes_moved(op).has_value())
          << name << ": " << graph.op_name(op);
    }
    const auto problem = compile(model.graph, read_cluster("2xp100"));
    EXPECT_EQ(problem->cost_origin("measured").ops, 0) << name;
  }
}

TEST(CapturedGraphs, training_graphs_compile_with_their_measured_times) {
  for (const char* name : kCaptures) {
    const auto problem = compile(read_model(capture_path(name)).graph, read_cluster("4xh200"));
    const Graph& graph = problem->graph();
    std::int64_t updates = 0;  // which were not timed
    for (OpId op = 0; op < graph.num_ops(); ++op) updates += graph.phase(op) == Phase::kUpdate;
    EXPECT_EQ(problem->cost_origin("analytic").ops, updates) << name;
    EXPECT_GT(problem->cost_origin("measured").share, 0.85) << name;
  }
}

// FLOPs of the forward pass, counted from ONNX shapes, against those that came with the capture.
TEST(CapturedGraphs, onnx_flops_agree_with_the_capture) {
  const auto total = [](const Graph& graph) {
    double flops = 0;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.phase(op) == Phase::kForward)
        flops += static_cast<double>(graph.flops(op).value_or(0));
    }
    return flops;
  };
  for (const char* name : kOnnxExports) {
    const double ours = total(*read_model(onnx_export_path(name)).graph);
    EXPECT_NEAR(ours / total(captured(name)), 1, 0.03) << name;
  }
}

}  // namespace
}  // namespace emplace
