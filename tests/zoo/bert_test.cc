#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(Bert, has_the_published_parameters) {
  EXPECT_EQ(parameters_of(bert_models(), "bert-base"), 109'514'298);
  EXPECT_EQ(parameters_of(bert_models(), "bert-large"), 335'174'458);
  EXPECT_EQ(parameters_of(bert_models(), "bert-base", {{"head", "none"}}), 109'482'240);
  EXPECT_EQ(parameters_of(bert_models(), "bert-large", {{"head", "none"}}), 335'141'888);
  EXPECT_EQ(parameters_of(bert_models(), "bert-base", {{"head", "pretraining"}}), 110'106'428);
}

TEST(Bert, untied_has_a_decoder_of_its_own) {
  const std::int64_t tied = parameters_of(bert_models(), "bert-base");
  EXPECT_EQ(parameters_of(bert_models(), "bert-base", {{"tied", "false"}}), tied + 30'522 * 768);
}

TEST(Bert, is_like_the_captured_model) {
  expect_like_capture(build(bert_models(), "bert-base", {{"tied", "false"}, {"optimizer", "sgd"}}),
                      "bert-base-b24");
}

TEST(Bert, a_sequence_beyond_the_position_table_is_refused) {
  EXPECT_THAT(error_of(bert_models(), "bert-base", {{"sequence", "513"}}),
              testing::HasSubstr("expected at most 512"));
  EXPECT_EQ(error_of(bert_models(), "bert-base",
                     {{"sequence", "513"}, {"positions", "513"}, {"layers", "1"}}),
            "");
}

TEST(Bert, heads_that_do_not_divide_the_width_are_refused) {
  EXPECT_THAT(error_of(bert_models(), "bert-base", {{"heads", "7"}}),
              testing::HasSubstr("768 is not divisible by 7 heads"));
}

TEST(Bert, trains_without_a_head_and_with_both) {
  for (const std::string head : {"none", "pretraining"}) {
    const Graph step = build(bert_models(), "bert-base", {{"head", head}, {"layers", "2"}});
    EXPECT_TRUE(step.find_op("bert.pooler.dense.weight/update").has_value()) << head;
  }
}

TEST(Bert, trains_in_half_precision) {
  expect_half_precision(build(bert_models(), "bert-base", {{"dtype", "float16"}, {"layers", "2"}}));
}

}  // namespace
}  // namespace emplace::zoo
