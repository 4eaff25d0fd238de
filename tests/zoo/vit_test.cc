#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(Vit, has_the_published_parameters) {
  EXPECT_EQ(parameters_of(vit_models(), "vit-b-16"), 86'567'656);
  EXPECT_EQ(parameters_of(vit_models(), "vit-l-16"), 304'326'632);
}

// torchvision gives 17.56 and 61.55 thousand million products for an image.
TEST(Vit, has_the_published_flops) {
  const OptionValues one = {{"training", "false"}, {"batch", "1"}};
  EXPECT_NEAR(total_flops(build(vit_models(), "vit-b-16", one), Phase::kForward) / 2 / 17.56e9, 1,
              0.03);
  EXPECT_NEAR(total_flops(build(vit_models(), "vit-l-16", one), Phase::kForward) / 2 / 61.55e9, 1,
              0.03);
}

TEST(Vit, patches_and_the_class_token_are_the_sequence) {
  const Graph graph = build(vit_models(), "vit-b-16", {{"training", "false"}, {"image", "64"}});
  const OpId positions = graph.find_op("encoder.pos_embedding").value();
  EXPECT_THAT(graph.shape(graph.outputs(positions)[0]), testing::ElementsAre(1, 17, 768));
}

TEST(Vit, an_image_that_is_not_made_of_patches_is_refused) {
  EXPECT_THAT(error_of(vit_models(), "vit-b-16", {{"image", "225"}}),
              testing::HasSubstr("an image of 225 is not made of patches of 16"));
}

TEST(Vit, trains_in_half_precision) {
  expect_half_precision(build(vit_models(), "vit-b-16", {{"dtype", "float16"}, {"layers", "2"}}));
}

}  // namespace
}  // namespace emplace::zoo
