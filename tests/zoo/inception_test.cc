#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(Inception, has_the_published_parameters_and_multiplications) {
  expect_published_parameters(inception_models());
  EXPECT_NEAR(giga_multiplications(inception_models(), "inception-v3"), 5.71, 0.01);
}

TEST(Inception, step_is_like_the_captured_one) {
  expect_like_capture(build(inception_models(), "inception-v3", {{"optimizer", "sgd"}}),
                      "inception-v3-b32");
}

TEST(Inception, auxiliary_classifier_adds_its_parameters_and_its_loss) {
  EXPECT_EQ(parameters_of(inception_models(), "inception-v3", {{"aux", "true"}}), 27'161'264);
  const Graph graph =
      build(inception_models(), "inception-v3", {{"aux", "true"}, {"training", "false"}});
  EXPECT_TRUE(graph.find_op("AuxLogits.loss.SoftmaxCrossEntropyLoss").has_value());
  int losses = 0;
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    losses += graph.consumers(tensor).empty() && graph.shape(tensor).empty() ? 1 : 0;
  }
  EXPECT_EQ(losses, 1);
}

TEST(Inception, auxiliary_classifier_needs_large_images) {
  EXPECT_EQ(error_of(inception_models(), "inception-v3", {{"aux", "true"}, {"image", "224"}}),
            "option 'aux' needs an 'image' of 299 or more, got 224");
  EXPECT_EQ(error_of(inception_models(), "inception-v3", {{"image", "75"}}), "");
  EXPECT_EQ(error_of(inception_models(), "inception-v3", {{"image", "74"}}),
            "option 'image': '74' is not a whole number from 75 to 16384");
}

TEST(Inception, trains_in_half_precision) {
  expect_half_precision(
      build(inception_models(), "inception-v3", {{"aux", "true"}, {"dtype", "float16"}}));
}

}  // namespace
}  // namespace emplace::zoo
