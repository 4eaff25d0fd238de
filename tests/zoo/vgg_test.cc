#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(Vgg, has_the_published_parameters_and_multiplications) {
  expect_published_parameters(vgg_models());
  EXPECT_NEAR(giga_multiplications(vgg_models(), "vgg-16"), 15.47, 0.02);
  EXPECT_NEAR(giga_multiplications(vgg_models(), "vgg-19"), 19.63, 0.02);
}

TEST(Vgg, step_is_like_the_captured_one) {
  expect_like_capture(build(vgg_models(), "vgg-16", {{"optimizer", "sgd"}}), "vgg16-b32");
}

TEST(Vgg, layers_choose_the_variant) {
  EXPECT_EQ(parameters_of(vgg_models(), "vgg-16", {{"layers", "19"}}), 143'667'240);
  EXPECT_EQ(error_of(vgg_models(), "vgg-16", {{"layers", "17"}}),
            "option 'layers': '17' is not one of: 16, 19");
}

TEST(Vgg, modules_have_the_names_of_torchvision) {
  const Graph graph = build_forward(vgg_models(), "vgg-16");
  for (const char* name : {"features.28.weight", "features.30.MaxPool", "classifier.6.bias"}) {
    EXPECT_TRUE(graph.find_op(name).has_value()) << name;
  }
}

TEST(Vgg, trains_in_half_precision) {
  expect_half_precision(build(vgg_models(), "vgg-16", {{"dtype", "float16"}}));
}

}  // namespace
}  // namespace emplace::zoo
