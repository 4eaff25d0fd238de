// Training steps made from the captured ONNX exports, against the steps that PyTorch captured.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/training.h"

#include "io/readers.h"
#include "zoo/captures.h"

namespace emplace {
namespace {

constexpr const char* kCaptures[] = {
    "bert-base-b24", "gnmt2-b256",   "gnmt4-b256", "gpt2-b8",    "inception-v3-b32",
    "nasnet-b32",    "resnet50-b32", "rnnlm4-b64", "wavenet-b8", "transformer-xl8-b32"};

std::string onnx_path(const std::string& name) {
  return EMPLACE_SOURCE_DIR "/../shared/data/graphs/" + name + ".onnx.gz";
}

const Graph& step_of(const std::string& name) {
  static std::map<std::string, Graph> steps;
  const auto found = steps.find(name);
  if (found != steps.end()) return found->second;
  return steps.emplace(name, training_step(*read_model(onnx_path(name)).graph)).first->second;
}

// Both passes but for the first layers' inputs, and once more for the weights.
TEST(TrainingCaptures, steps_cost_three_times_the_forward_pass) {
  if (!zoo::has_capture("rnnlm4-b64")) GTEST_SKIP() << "no captured graphs beside the repository";
  for (const char* name : kCaptures) {
    const Graph& step = step_of(name);
    const double all = zoo::total_flops(step, std::nullopt);
    const double forward = zoo::total_flops(step, Phase::kForward);
    EXPECT_GT(all / forward, 2.9) << name;
    EXPECT_LT(all / forward, 3.05) << name;
  }
}

// PyTorch's counter takes every channel of a depthwise convolution to see every other in the
// gradient of the weights, so nasnet is left out.
TEST(TrainingCaptures, flops_of_the_step_agree) {
  if (!zoo::has_capture("rnnlm4-b64")) GTEST_SKIP() << "no captured graphs beside the repository";
  for (const std::string name : kCaptures) {
    if (name == "nasnet-b32") continue;
    const double ours = zoo::total_flops(step_of(name), std::nullopt);
    EXPECT_NEAR(ours / zoo::total_flops(zoo::captured(name), std::nullopt), 1, 0.01) << name;
  }
}

TEST(TrainingCaptures, every_parameter_is_updated_once) {
  if (!zoo::has_capture("rnnlm4-b64")) GTEST_SKIP() << "no captured graphs beside the repository";
  for (const char* name : kCaptures) {
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

// Recurrent networks agree to a hundredth. The exports of the attention models have no dropout,
// whose masks and results the captures keep; those of the convolutional networks have no batch
// normalisation, and are left out.
TEST(TrainingCaptures, peak_memory_on_one_device_agrees) {
  struct Case {
    const char* name;
    double tolerance;
  };
  constexpr Case kCases[] = {{"rnnlm4-b64", 0.01},        {"gnmt2-b256", 0.01},
                             {"gnmt4-b256", 0.01},        {"wavenet-b8", 0.01},
                             {"bert-base-b24", 0.1},      {"gpt2-b8", 0.1},
                             {"transformer-xl8-b32", 0.1}};
  if (!zoo::has_capture("rnnlm4-b64")) GTEST_SKIP() << "no captured graphs beside the repository";
  for (const Case& each : kCases) {
    const auto ours = static_cast<double>(zoo::peak_on_one_device(step_of(each.name)));
    const auto theirs = static_cast<double>(zoo::peak_on_one_device(zoo::captured(each.name)));
    EXPECT_NEAR(ours / theirs, 1, each.tolerance) << each.name;
  }
}

}  // namespace
}  // namespace emplace
