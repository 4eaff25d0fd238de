#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

// The paper rounds: 65 and 213 million.
TEST(Transformer, is_as_near_to_the_published_parameters_as_the_architecture_gets) {
  const std::int64_t base = parameters_of(transformer_models(), "transformer-base");
  const std::int64_t big = parameters_of(transformer_models(), "transformer-big");
  EXPECT_EQ(base, 63'082'496);
  EXPECT_NEAR(static_cast<double>(base) / 65e6, 1, 0.03);
  EXPECT_EQ(big, 214'245'376);
  EXPECT_NEAR(static_cast<double>(big) / 213e6, 1, 0.006);
}

TEST(Transformer, one_table_embeds_both_languages_and_decodes) {
  const Graph graph = build(transformer_models(), "transformer-base", {{"training", "false"}});
  EXPECT_EQ(forward_readers(graph, "embedding.weight"), 3U);
  EXPECT_EQ(forward_readers(graph, "decoder.causal_mask"), 6U);
}

TEST(Transformer, sentences_may_differ_in_length) {
  const OptionValues options = {{"training", "false"}, {"sequence", "40"}, {"target", "30"}};
  const Graph graph = build(transformer_models(), "transformer-base", options);
  const OpId op = graph.find_op("decoder.layers.0.cross_attention.Softmax").value();
  EXPECT_THAT(graph.shape(graph.outputs(op)[0]), testing::ElementsAre(64, 8, 30, 40));
}

TEST(Transformer, a_step_costs_three_times_the_forward_pass) {
  const Graph step = build(transformer_models(), "transformer-base");
  EXPECT_NEAR(total_flops(step, std::nullopt) / total_flops(step, Phase::kForward), 3, 0.03);
}

TEST(Transformer, trains_in_half_precision) {
  expect_half_precision(
      build(transformer_models(), "transformer-big", {{"dtype", "float16"}, {"layers", "2"}}));
}

TEST(Transformer, heads_that_do_not_divide_the_width_are_refused) {
  EXPECT_THAT(error_of(transformer_models(), "transformer-base", {{"heads", "3"}}),
              testing::HasSubstr("512 is not divisible by 3 heads"));
}

}  // namespace
}  // namespace emplace::zoo
