// The built-in curves against measured graphs, and curves fitted to all graphs but one against that
// one. Totals of a step's ops, without views.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/device_kinds.h"

#include "cost/fit.h"
#include "cost/problem.h"

#include "io/readers.h"
#include "support/captures.h"

namespace emplace {
namespace {

class Calibration : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kCaptures) models_.push_back(read_model(capture_path(name)));
    for (const Model& model : models_) graphs_.push_back(model.graph.get());
  }

  // Mean at most 12 %, none beyond 25 %.
  static void expect_close(const std::vector<FitError>& errors) {
    double sum = 0;
    for (const FitError& error : errors) {
      EXPECT_GT(error.ops, 50) << error.name;
      EXPECT_LE(std::abs(error.total_error()), 0.25) << error.name;
      sum += std::abs(error.total_error());
    }
    EXPECT_LE(sum / static_cast<double>(errors.size()), 0.12);
  }

  std::vector<Model> models_;
  std::vector<const Graph*> graphs_;
};

TEST_F(Calibration, built_in_h200_is_close_to_every_measured_step) {
  std::vector<FitError> errors;
  for (const Graph* graph : graphs_) {
    errors.push_back(graph_error(*graph, "h200", *find_device_kind("h200")));
  }
  expect_close(errors);
}

// From figures that were fitted to nothing, so that the graph left out is unseen. None of the
// others is like gnmt.
TEST_F(Calibration, curves_fitted_to_the_other_graphs_are_close_to_each) {
  DeviceKind start = *find_device_kind("h200");
  start.curves = typical_curves();
  start.launch_us = 10;
  std::vector<FitError> errors = leave_one_out(graphs_, "h200", start);
  std::erase_if(errors, [](const FitError& error) { return error.name == "gnmt4-b256"; });
  EXPECT_EQ(errors.size(), graphs_.size() - 1);
  expect_close(errors);
}

TEST_F(Calibration, analytic_problems_have_the_same_totals) {
  for (const Model& model : models_) {
    const auto problem =
        compile(model.graph, read_cluster("1xh200"), {.cost = CostMode::kAnalytic});
    double total = 0;
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      if (!model.graph->measured_times(op).empty()) {
        total += static_cast<double>(problem->duration(op, 0)) / 1000;
      }
    }
    const FitError error = graph_error(*model.graph, "h200", *find_device_kind("h200"));
    EXPECT_NEAR(total, error.fitted_us, 1e-3 * total) << model.graph->name();
  }
}

TEST_F(Calibration, the_cpu_kind_is_of_the_right_size) {
  for (const Graph* graph : graphs_) {
    const FitError error = graph_error(*graph, "cpu16", *find_device_kind("cpu16"));
    if (error.ops == 0) continue;  // gpt2 was not timed on the CPU
    EXPECT_LT(std::abs(error.total_error()), 0.5) << error.name;
  }
}

}  // namespace
}  // namespace emplace
