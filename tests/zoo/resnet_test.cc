#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(ResNet, has_the_published_parameters_and_multiplications) {
  expect_published_parameters(resnet_models());
  EXPECT_NEAR(giga_multiplications(resnet_models(), "resnet-50"), 4.09, 0.01);
  EXPECT_NEAR(giga_multiplications(resnet_models(), "resnet-101"), 7.80, 0.01);
  EXPECT_NEAR(giga_multiplications(resnet_models(), "resnet-152"), 11.51, 0.01);
}

TEST(ResNet, step_is_like_the_captured_one) {
  expect_like_capture(build(resnet_models(), "resnet-50", {{"optimizer", "sgd"}}), "resnet50-b32");
}

TEST(ResNet, modules_have_the_names_of_torchvision) {
  const Graph graph = build_forward(resnet_models(), "resnet-50");
  for (const char* name : {"conv1.weight", "layer4.2.conv3.Conv", "layer2.0.downsample.1.bias",
                           "layer3.5.bn2.running_var", "fc.Gemm"}) {
    EXPECT_TRUE(graph.find_op(name).has_value()) << name;
  }
  EXPECT_FALSE(graph.find_op("layer2.1.downsample.1.bias").has_value());
}

TEST(ResNet, parameters_do_not_depend_on_the_size_of_images) {
  EXPECT_EQ(parameters_of(resnet_models(), "resnet-50", {{"image", "64"}}), 25'557'032);
}

TEST(ResNet, trains_in_half_precision) {
  expect_half_precision(build(resnet_models(), "resnet-50", {{"dtype", "float16"}}));
}

TEST(ResNet, other_depths_are_refused) {
  EXPECT_EQ(error_of(resnet_models(), "resnet-50", {{"layers", "60"}}),
            "option 'layers': '60' is not one of: 50, 101, 152");
  EXPECT_EQ(error_of(resnet_models(), "resnet-50", {{"image", "8"}}),
            "option 'image': '8' is not a whole number from 32 to 16384");
}

// Weights, gradients and the optimizer's history in 32 bits, in GiB, as Tofu's paper lists them.
TEST(WideResNet, is_as_large_as_tofu_says) {
  const auto gib = [](const OptionValues& options) {
    const std::int64_t parameters = parameters_of(resnet_models(), "wide-resnet", options);
    return static_cast<double>(parameters) * 12 / (1 << 30);
  };
  EXPECT_NEAR(gib({}), 65.0, 0.1);
  EXPECT_NEAR(gib({{"width", "4"}}), 10.5, 0.1);
  EXPECT_NEAR(gib({{"layers", "50"}}), 26.7, 0.3);
}

TEST(WideResNet, inner_channels_alone_are_torchvisions) {
  const auto count = [](const char* layers) {
    return parameters_of(resnet_models(), "wide-resnet",
                         {{"layers", layers}, {"width", "2"}, {"widen", "inner"}});
  };
  EXPECT_EQ(count("50"), 68'883'240);
  EXPECT_EQ(count("101"), 126'886'696);
  EXPECT_NEAR(giga_multiplications(resnet_models(), "wide-resnet-50-2"), 11.40, 0.01);
}

TEST(WideResNet, of_width_one_is_resnet) {
  for (const char* widen : {"all", "inner"}) {
    EXPECT_EQ(parameters_of(resnet_models(), "wide-resnet", {{"width", "1"}, {"widen", widen}}),
              60'192'808);
  }
}

}  // namespace
}  // namespace emplace::zoo
