#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

Graph gnmt(std::string_view name, const OptionValues& options = {}) {
  return build(gnmt_models(), name, options);
}

Graph gnmt_forward(std::string_view name, const OptionValues& options = {}) {
  return build_forward(gnmt_models(), name, options);
}

TEST(Gnmt, has_the_parameters_of_its_layers) {
  const auto count = [](std::int64_t layers) {
    const std::int64_t words = 32'000;
    const std::int64_t h = 1024;
    const auto lstm = [&](std::int64_t in) { return 4 * h * (in + h) + 8 * h; };
    const std::int64_t encoder = 2 * lstm(h) + lstm(2 * h) + (layers - 2) * lstm(h);
    const std::int64_t attention = 2 * h * h + h;
    return 2 * words * h + encoder + layers * lstm(2 * h) + attention + words * (h + 1);
  };
  for (const int layers : {2, 4, 8}) {
    EXPECT_EQ(count_parameters(gnmt_forward(fmt::format("gnmt-{}", layers))), count(layers))
        << layers;
  }
}

TEST(Gnmt, is_the_captured_model) {
  for (const int layers : {2, 4}) {
    const std::string name = fmt::format("gnmt{}-b256", layers);
    const Graph graph = gnmt(fmt::format("gnmt-{}", layers), {{"optimizer", "sgd"}});
    EXPECT_EQ(count_parameters(graph), figures_of(name).parameters) << name;
    expect_like_capture(graph, name);
  }
}

TEST(Gnmt, reads_the_source_in_both_directions) {
  const Graph graph = gnmt_forward("gnmt-2", {{"sequence", "4"}});
  EXPECT_EQ(module_read_with(graph, "encoder.layer.0.fw.weight_hh", "encoder.layer.0.fw.step.2"),
            "encoder.layer.0.fw.step.1");
  EXPECT_EQ(module_read_with(graph, "encoder.layer.0.bw.weight_hh", "encoder.layer.0.bw.step.2"),
            "encoder.layer.0.bw.step.3");
  const auto joins = ops_of(graph, "encoder.layer.1.step.2", "Concat");
  ASSERT_EQ(joins.size(), 1U);
  EXPECT_EQ(graph.module(graph.producer(graph.inputs(joins[0])[0])), "encoder.layer.0.fw.step.2");
  EXPECT_EQ(graph.module(graph.producer(graph.inputs(joins[0])[1])), "encoder.layer.0.bw.step.2");
}

TEST(Gnmt, adds_a_layers_input_to_its_output_from_the_third_layer_on) {
  const Graph graph = gnmt_forward("gnmt-4", {{"sequence", "2"}});
  for (const char* side : {"encoder", "decoder"}) {
    for (const int layer : {1, 2, 3}) {
      const std::string step = fmt::format("{}.layer.{}.step.1", side, layer);
      // Those of the cell itself: of its gates, and of its state.
      EXPECT_EQ(ops_of(graph, step, "Add").size(), layer < 2 ? 2U : 3U) << step;
    }
  }
}

TEST(Gnmt, gives_the_context_to_the_upper_layers_now_and_to_the_first_at_the_next_step) {
  const Graph graph = gnmt_forward("gnmt-4", {{"sequence", "3"}});
  const auto context_of = [&](const std::string& step) {
    const auto joins = ops_of(graph, step, "Concat");
    return std::string(graph.module(graph.producer(graph.inputs(joins.at(0))[1])));
  };
  EXPECT_EQ(context_of("decoder.layer.0.step.0"), "decoder");  // zeros
  EXPECT_EQ(context_of("decoder.layer.0.step.2"), "attention.step.1");
  EXPECT_EQ(context_of("decoder.layer.1.step.2"), "attention.step.2");
  EXPECT_EQ(context_of("decoder.layer.3.step.2"), "attention.step.2");
}

TEST(Gnmt, long_sequences_make_graphs_of_a_hundred_thousand_ops) {
  const OptionValues options{{"sequence", "150"}, {"batch", "64"}};
  EXPECT_GE(gnmt("gnmt-8", options).num_ops(), 80'000U);
}

TEST(Gnmt, takes_the_element_type_that_is_asked_for) {
  const Graph graph = gnmt("gnmt-2", {{"dtype", "float16"}, {"sequence", "2"}});
  expect_half_precision(graph);
}

TEST(Gnmt, says_that_it_needs_two_layers) {
  const std::string error = error_of(gnmt_models(), "gnmt-4", {{"layers", "1"}});
  EXPECT_NE(error.find("layers"), std::string::npos) << error;
  EXPECT_NE(error.find("2"), std::string::npos) << error;
}

}  // namespace
}  // namespace emplace::zoo
