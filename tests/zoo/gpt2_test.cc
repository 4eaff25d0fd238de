#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(Gpt2, has_the_published_parameters) {
  EXPECT_EQ(parameters_of(gpt2_models(), "gpt2-small"), 124'439'808);
  EXPECT_EQ(parameters_of(gpt2_models(), "gpt2-medium"), 354'823'168);
  EXPECT_EQ(parameters_of(gpt2_models(), "gpt2-large"), 774'030'080);
  EXPECT_EQ(parameters_of(gpt2_models(), "gpt2-xl"), 1'557'611'200);
}

TEST(Gpt2, untied_has_the_parameters_of_the_capture) {
  EXPECT_EQ(parameters_of(gpt2_models(), "gpt2-small", {{"tied", "false"}}), 163'037'184);
}

TEST(Gpt2, is_like_the_captured_model) {
  expect_like_capture(build(gpt2_models(), "gpt2-small", {{"tied", "false"}, {"optimizer", "sgd"}}),
                      "gpt2-b8");
}

TEST(Gpt2, layers_share_one_mask_and_the_tied_table_is_updated_once) {
  const Graph step = build(gpt2_models(), "gpt2-small", {{"layers", "3"}});
  EXPECT_EQ(forward_readers(step, "causal_mask"), 3U);
  EXPECT_EQ(forward_readers(step, "transformer.wte.weight"), 2U);
  EXPECT_TRUE(step.find_op("transformer.wte.weight/update").has_value());
  EXPECT_FALSE(step.find_op("lm_head.weight").has_value());
}

TEST(Gpt2, a_sequence_beyond_the_position_table_is_refused) {
  EXPECT_THAT(error_of(gpt2_models(), "gpt2-xl", {{"sequence", "2048"}}),
              testing::HasSubstr("expected at most 1024"));
}

TEST(Gpt2, trains_in_half_precision) {
  expect_half_precision(
      build(gpt2_models(), "gpt2-small", {{"dtype", "float16"}, {"layers", "2"}}));
}

}  // namespace
}  // namespace emplace::zoo
