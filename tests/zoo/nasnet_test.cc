#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(NasNet, has_the_published_parameters_and_multiplications) {
  expect_published_parameters(nasnet_models());
  EXPECT_NEAR(giga_multiplications(nasnet_models(), "nasnet-a-mobile"), 0.564, 0.001);
  EXPECT_NEAR(giga_multiplications(nasnet_models(), "nasnet-a-large"), 23.8, 0.1);
}

TEST(NasNet, small_one_has_the_products_of_the_captured_one) {
  const CaptureFigures& capture = figures_of("nasnet-b32");
  const Graph step = build(nasnet_models(), "nasnet-small", {{"optimizer", "sgd"}});
  EXPECT_EQ(count_parameters(step), capture.parameters);
  const double forward = product_flops(step, Phase::kForward);
  EXPECT_NEAR(forward / capture.forward_flops, 1, 1e-4);
  const double all = forward + product_flops(step, Phase::kBackward);
  EXPECT_NEAR(all / capture.step_flops, 1, 1e-4);
  EXPECT_NEAR(static_cast<double>(peak_on_one_device(step)) / static_cast<double>(capture.peak), 1,
              0.15);
}

TEST(NasNet, cells_are_a_third_each) {
  const Graph graph =
      build(nasnet_models(), "nasnet-a-mobile", {{"layers", "6"}, {"training", "false"}});
  const auto channels = [&](const char* name) {
    const auto op = graph.find_op(name);
    return op ? graph.shape(graph.outputs(*op)[0])[0] : -1;
  };
  EXPECT_EQ(channels("cell_1.beginning.conv.weight"), 44);
  EXPECT_EQ(channels("reduction_cell_0.beginning.conv.weight"), 88);
  EXPECT_EQ(channels("cell_2.beginning.conv.weight"), 88);
  EXPECT_EQ(channels("cell_5.beginning.conv.weight"), 176);
  EXPECT_EQ(channels("cell_6.beginning.conv.weight"), -1);
}

TEST(NasNet, sizes_that_do_not_divide_are_refused) {
  EXPECT_EQ(error_of(nasnet_models(), "nasnet-a-mobile", {{"layers", "13"}}),
            "option 'layers': expected a multiple of 3, got 13");
  EXPECT_EQ(error_of(nasnet_models(), "nasnet-a-mobile", {{"filters", "1000"}}),
            "option 'filters': expected a multiple of 96, got 1000");
  EXPECT_EQ(error_of(nasnet_models(), "nasnet-small", {{"filters", "45"}}),
            "option 'filters': expected a multiple of 2, got 45");
}

TEST(NasNet, any_size_of_images_works) {
  for (const char* image : {"32", "225", "331"}) {
    EXPECT_EQ(parameters_of(nasnet_models(), "nasnet-a-mobile", {{"image", image}}), 5'289'978);
    EXPECT_EQ(parameters_of(nasnet_models(), "nasnet-small", {{"image", image}}), 4'938'772);
  }
}

TEST(NasNet, trains_in_half_precision) {
  expect_half_precision(build(nasnet_models(), "nasnet-a-mobile", {{"dtype", "float16"}}));
}

}  // namespace
}  // namespace emplace::zoo
