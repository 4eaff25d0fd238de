#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

Graph rnnlm(const OptionValues& options = {}) {
  return build(rnnlm_models(), "rnnlm", options);
}

TEST(RnnLm, has_the_parameters_of_its_layers) {
  const auto count = [](std::int64_t layers, std::int64_t hidden, std::int64_t words) {
    return words * hidden + layers * (8 * hidden * hidden + 8 * hidden) + words * (hidden + 1);
  };
  EXPECT_EQ(count_parameters(rnnlm({{"training", "false"}})), count(4, 2048, 32'000));
  EXPECT_EQ(
      count_parameters(rnnlm(
          {{"training", "false"}, {"layers", "2"}, {"hidden", "100"}, {"vocabulary", "1000"}})),
      count(2, 100, 1000));
}

TEST(RnnLm, is_the_captured_model) {
  const Graph graph = rnnlm();
  EXPECT_EQ(count_parameters(graph), figures_of("rnnlm4-b64").parameters);
  expect_like_capture(graph, "rnnlm4-b64");
}

TEST(RnnLm, reads_a_layers_weights_at_every_step) {
  const Graph graph = rnnlm({{"training", "false"}, {"sequence", "7"}});
  for (const char* name : {"layer.0.weight_ih", "layer.3.weight_hh", "layer.3.bias_hh",
                           "embedding.weight", "projection.weight"}) {
    const auto op = graph.find_op(name);
    ASSERT_TRUE(op.has_value()) << name;
    EXPECT_EQ(graph.consumers(graph.outputs(*op)[0]).size(), 7U) << name;
  }
}

TEST(RnnLm, hands_the_state_on_from_step_to_step) {
  const Graph graph = rnnlm({{"training", "false"}, {"sequence", "3"}});
  for (const int step : {1, 2}) {
    const std::string here = fmt::format("layer.2.step.{}", step);
    EXPECT_EQ(module_read_with(graph, "layer.2.weight_ih", here),
              fmt::format("layer.1.step.{}", step));
    EXPECT_EQ(module_read_with(graph, "layer.2.weight_hh", here),
              fmt::format("layer.2.step.{}", step - 1));
  }
}

TEST(RnnLm, takes_the_element_type_that_is_asked_for) {
  const Graph graph = rnnlm({{"dtype", "float16"}, {"sequence", "2"}});
  expect_half_precision(graph);
}

TEST(RnnLm, says_what_an_option_may_be) {
  EXPECT_NE(error_of(rnnlm_models(), "rnnlm", {{"layers", "0"}}).find("layers"), std::string::npos);
  EXPECT_NE(error_of(rnnlm_models(), "rnnlm", {{"sequense", "5"}}).find("did you mean 'sequence'"),
            std::string::npos);
}

}  // namespace
}  // namespace emplace::zoo
