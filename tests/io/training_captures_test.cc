// Training steps made from the captured ONNX exports, against the steps that PyTorch captured.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/training.h"

#include "io/readers.h"
#include "support/captures.h"
#include "zoo/captures.h"

namespace emplace {
namespace {

const Graph& step_of(const std::string& name) {
  static std::map<std::string, Graph> steps;
  const auto found = steps.find(name);
  if (found != steps.end()) return found->second;
  return steps.emplace(name, training_step(*read_model(onnx_export_path(name)).graph))
      .first->second;
}

// Both passes but for the first layers' inputs, and once more for the weights.
TEST(TrainingCaptures, steps_cost_three_times_the_forward_pass) {
  for (const char* name : kOnnxExports) {
    const Graph& step = step_of(name);
    const double all = zoo::total_flops(step, std::nullopt);
    const double forward = zoo::total_flops(step, Phase::kForward);
    EXPECT_GT(all / forward, 2.9) << name;
    EXPECT_LT(all / forward, 3.05) << name;
  }
}

TEST(TrainingCaptures, flops_of_the_step_agree) {
  for (const char* name : kOnnxExports) {
    const double ours = zoo::total_flops(step_of(name), std::nullopt);
    EXPECT_NEAR(ours / zoo::total_flops(captured(name), std::nullopt), 1, 0.01) << name;
  }
}

TEST(TrainingCaptures, every_parameter_is_updated_once) {
  for (const char* name : kOnnxExports) {
    const Graph& step = step_of(name);
    std::size_t updates = 0;
    std::vector<int> of_parameter(step.num_tensors(), 0);
    for (OpId op = 0; op < step.num_ops(); ++op) {
      if (step.type(op) != "SgdUpdate") continue;
      ++updates;
      EXPECT_EQ(++of_parameter[step.inputs(op)[0]], 1) << step.op_name(op);
    }
    EXPECT_GT(updates, 10U) << name;
  }
}

// The export has no dropout, whose masks and results the capture keeps.
TEST(TrainingCaptures, peak_memory_on_one_device_agrees) {
  const auto ours = static_cast<double>(zoo::peak_on_one_device(step_of("bert-base-b24")));
  EXPECT_NEAR(ours / static_cast<double>(zoo::figures_of("bert-base-b24").peak), 1, 0.1);
}

}  // namespace
}  // namespace emplace
