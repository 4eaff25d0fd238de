#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(DenseNet, has_the_published_parameters_and_multiplications) {
  expect_published_parameters(densenet_models());
  EXPECT_NEAR(giga_multiplications(densenet_models(), "densenet-121"), 2.83, 0.01);
  EXPECT_NEAR(giga_multiplications(densenet_models(), "densenet-161"), 7.73, 0.01);
  EXPECT_NEAR(giga_multiplications(densenet_models(), "densenet-169"), 3.36, 0.01);
  EXPECT_NEAR(giga_multiplications(densenet_models(), "densenet-201"), 4.29, 0.01);
}

TEST(DenseNet, every_layer_reads_all_before_it) {
  const Graph graph = build_forward(densenet_models(), "densenet-121");
  for (int layer = 2; layer <= 24; ++layer) {
    const auto op =
        graph.find_op("features.denseblock3.denselayer" + std::to_string(layer) + ".Concat");
    ASSERT_TRUE(op.has_value()) << layer;
    EXPECT_EQ(graph.inputs(*op).size(), static_cast<std::size_t>(layer));
  }
}

TEST(DenseNet, growth_sets_the_channels) {
  const Graph graph =
      build(densenet_models(), "densenet-121", {{"training", "false"}, {"growth", "16"}});
  const auto op = graph.find_op("classifier.weight");
  ASSERT_TRUE(op.has_value());
  EXPECT_EQ(graph.shape(graph.outputs(*op)[0])[1], 512);  // half of the published 1024
}

TEST(DenseNet, trains_in_half_precision) {
  expect_half_precision(build(densenet_models(), "densenet-121", {{"dtype", "float16"}}));
}

TEST(DenseNet, other_depths_are_refused) {
  EXPECT_EQ(error_of(densenet_models(), "densenet-121", {{"layers", "122"}}),
            "option 'layers': '122' is not one of: 121, 161, 169, 201");
}

}  // namespace
}  // namespace emplace::zoo
