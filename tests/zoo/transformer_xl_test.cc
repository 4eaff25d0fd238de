#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

const std::string kEight = "transformer-xl-8";

TEST(TransformerXl, has_the_parameters_of_the_captured_model) {
  EXPECT_EQ(parameters_of(transformer_xl_models(), kEight), 170'499'328);
}

TEST(TransformerXl, is_like_the_captured_model) {
  expect_like_capture(build(transformer_xl_models(), kEight, {{"optimizer", "sgd"}}),
                      "transformer-xl8-b32");
}

TEST(TransformerXl, models_differ_in_their_layers) {
  const std::int64_t two = parameters_of(transformer_xl_models(), "transformer-xl-2");
  const std::int64_t four = parameters_of(transformer_xl_models(), "transformer-xl-4");
  const std::int64_t eight = parameters_of(transformer_xl_models(), kEight);
  EXPECT_EQ(eight - four, 2 * (four - two));
  EXPECT_GT(four, two);
}

TEST(TransformerXl, a_segment_attends_to_the_layers_input_of_the_one_before) {
  const Graph graph = build(transformer_xl_models(), "transformer-xl-2", {{"training", "false"}});
  // What layer 1 read in the first segment is its memory in the second.
  const OpId query = graph.find_op("layers.1.segment.0.Gemm").value();
  const OpId joined = graph.find_op("layers.1.segment.1.Concat").value();
  const OpId memory = graph.producer(graph.inputs(joined)[0]);
  EXPECT_EQ(graph.type(memory), "Identity");
  const OpId view = graph.producer(graph.inputs(query)[0]);
  EXPECT_EQ(graph.inputs(memory)[0], graph.inputs(view)[0]);
}

TEST(TransformerXl, gradients_of_a_segment_do_not_wait_for_the_next_one) {
  const Graph step = build(transformer_xl_models(), "transformer-xl-2");
  std::vector<bool> follows(step.num_ops(), false);  // a gradient of the second segment
  int gradients = 0;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.phase(op) != Phase::kBackward) continue;
    const std::string_view module = step.module(op);
    follows[op] = module.find("segment.1") != std::string_view::npos;
    for (const TensorId input : step.inputs(op)) {
      if (follows[step.producer(input)]) follows[op] = true;
    }
    if (step.type(op) != "SoftmaxGrad" || module.find("segment.0") == std::string_view::npos) {
      continue;
    }
    ++gradients;
    EXPECT_FALSE(follows[op]) << step.op_name(op);
  }
  EXPECT_EQ(gradients, 2);
}

TEST(TransformerXl, the_papers_positions_project_the_distances) {
  const OptionValues options = {{"positions", "sinusoid"}, {"layers", "2"}};
  const Graph step = build(transformer_xl_models(), kEight, options);
  EXPECT_EQ(forward_readers(step, "causal_mask"), 4U);
  for (const std::string name : {"r.weight", "content_bias", "distance_bias"}) {
    EXPECT_TRUE(step.find_op("layers.1." + name + "/update").has_value()) << name;
  }
  EXPECT_FALSE(step.find_op("layers.1.position_bias").has_value());
  // [n, heads, segment, memory + segment], after every row was moved.
  const OpId softmax = step.find_op("layers.1.segment.1.Softmax").value();
  EXPECT_THAT(step.shape(step.outputs(softmax)[0]), testing::ElementsAre(32, 16, 128, 256));
}

TEST(TransformerXl, a_sequence_that_is_not_made_of_segments_is_refused) {
  EXPECT_THAT(error_of(transformer_xl_models(), kEight, {{"sequence", "200"}}),
              testing::HasSubstr("sequence 200 is not made of segments of 128"));
}

TEST(TransformerXl, trains_in_half_precision) {
  for (const std::string positions : {"table", "sinusoid"}) {
    expect_half_precision(build(transformer_xl_models(), "transformer-xl-2",
                                {{"dtype", "float16"}, {"positions", positions}}));
  }
}

}  // namespace
}  // namespace emplace::zoo
