#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(AlexNet, has_the_published_parameters_and_multiplications) {
  expect_published_parameters(alexnet_models());
  EXPECT_NEAR(giga_multiplications(alexnet_models(), "alexnet"), 0.71, 0.01);
}

TEST(AlexNet, drops_activations_in_training_alone) {
  const auto count = [](const char* training) {
    const Graph graph = build(alexnet_models(), "alexnet", {{"training", training}});
    int dropouts = 0;
    for (OpId op = 0; op < graph.num_ops(); ++op) dropouts += graph.type(op) == "Dropout" ? 1 : 0;
    return dropouts;
  };
  EXPECT_EQ(count("true"), 2);
  EXPECT_EQ(count("false"), 0);
}

TEST(AlexNet, trains_in_half_precision) {
  expect_half_precision(build(alexnet_models(), "alexnet", {{"dtype", "float16"}}));
}

TEST(AlexNet, linear_layers_may_be_narrow) {
  const std::int64_t convolutions = 2'469'696;
  EXPECT_EQ(parameters_of(alexnet_models(), "alexnet", {{"width", "8"}}),
            convolutions + (9216 + 1) * 8 + (8 + 1) * 8 + (8 + 1) * 1000);
}

TEST(AlexNet, has_no_size_of_images_to_choose) {
  EXPECT_NE(error_of(alexnet_models(), "alexnet", {{"image", "64"}}).find("unknown option 'image'"),
            std::string::npos);
}

}  // namespace
}  // namespace emplace::zoo
