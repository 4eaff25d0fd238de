#include <gtest/gtest.h>

#include "graph/tensor_type.h"

#include "zoo/built_graphs.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

Graph stacked(const OptionValues& options) {
  return build(stacked_rnn_models(), "stacked-rnn", options);
}

TEST(StackedRnn, has_the_parameters_of_its_layers) {
  const auto count = [](std::int64_t layers, std::int64_t h, std::int64_t in, std::int64_t out) {
    return 4 * h * (in + h) + 8 * h + (layers - 1) * (8 * h * h + 8 * h) + out * (h + 1);
  };
  EXPECT_EQ(count_parameters(stacked({{"training", "false"}})), count(10, 8192, 512, 512));
  EXPECT_EQ(count_parameters(stacked({{"training", "false"},
                                      {"layers", "6"},
                                      {"hidden", "4096"},
                                      {"input", "256"},
                                      {"classes", "100"}})),
            count(6, 4096, 256, 100));
}

// The gradients are as large as the weights, and all are there at the end of a step.
TEST(StackedRnn, has_57_gibibytes_of_weights_gradients_and_momentum) {
  const Graph graph = stacked({{"sequence", "1"}});
  Bytes weights = 0;
  Bytes history = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const bool buffer = graph.role(op) == OpRole::kBuffer;
    if (graph.role(op) != OpRole::kParameter && !buffer) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      (buffer ? history : weights) += graph.memory_bytes(tensor);
    }
  }
  EXPECT_EQ(history, weights);
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  EXPECT_NEAR(static_cast<double>(2 * weights + history) / kGiB, 57, 0.5);
}

TEST(StackedRnn, unrolls_twenty_steps) {
  const Graph graph = stacked({{"training", "false"}, {"layers", "2"}, {"hidden", "64"}});
  EXPECT_EQ(ops_of(graph, "layer.1.step.19", "Gemm").size(), 2U);
  EXPECT_EQ(ops_of(graph, "layer.1.step.20", "Gemm").size(), 0U);
}

TEST(StackedRnn, takes_the_element_type_that_is_asked_for) {
  const Graph graph = stacked({{"dtype", "float16"}, {"sequence", "2"}});
  expect_half_precision(graph);
}

TEST(StackedRnn, says_what_an_option_may_be) {
  const std::string error = error_of(stacked_rnn_models(), "stacked-rnn", {{"hidden", "8k"}});
  EXPECT_NE(error.find("hidden"), std::string::npos) << error;
}

}  // namespace
}  // namespace emplace::zoo
