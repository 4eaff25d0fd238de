#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(T5, has_the_published_parameters) {
  EXPECT_EQ(parameters_of(t5_models(), "t5-small"), 60'506'624);
  EXPECT_EQ(parameters_of(t5_models(), "t5-base"), 222'903'552);
  EXPECT_EQ(parameters_of(t5_models(), "t5-large"), 737'668'096);
}

TEST(T5, layers_of_a_stack_share_the_bias_of_the_first) {
  const Graph graph = build(t5_models(), "t5-small", {{"training", "false"}});
  int tables = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const bool table = graph.op_name(op).ends_with("relative_attention_bias.weight");
    tables += table ? 1 : 0;
  }
  EXPECT_EQ(tables, 2);
  EXPECT_EQ(forward_readers(graph, "encoder.block.0.layer.0.SelfAttention.Unsqueeze"), 6U);
  EXPECT_EQ(forward_readers(graph, "shared.weight"), 3U);
}

TEST(T5, every_decoder_layer_reads_the_encoder) {
  const Graph graph = build(t5_models(), "t5-small", {{"training", "false"}, {"layers", "3"}});
  for (int i = 0; i < 3; ++i) {
    const std::string cross = fmt::format("decoder.block.{}.layer.1.EncDecAttention.k.Gemm", i);
    const OpId op = graph.find_op(cross).value();
    const auto keys = graph.shape(graph.outputs(op)[0]);
    EXPECT_THAT(keys, testing::ElementsAre(32 * 512, 512));
  }
}

TEST(T5, trains_in_half_precision) {
  expect_half_precision(build(t5_models(), "t5-small", {{"dtype", "float16"}, {"layers", "2"}}));
}

TEST(T5, an_unknown_option_is_refused_with_the_nearest_name) {
  EXPECT_THAT(error_of(t5_models(), "t5-small", {{"layer", "2"}}),
              testing::HasSubstr("did you mean 'layers'"));
  EXPECT_THAT(error_of(t5_models(), "t5-small", {{"dropout", "1"}}),
              testing::HasSubstr("0 to 0.99"));
}

}  // namespace
}  // namespace emplace::zoo
