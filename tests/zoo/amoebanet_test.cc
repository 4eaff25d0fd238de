#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

// GPipe prints two or three digits.
TEST(AmoebaNet, is_as_large_as_gpipe_says) {
  const auto millions = [](const char* layers, const char* filters) {
    const OptionValues options{{"layers", layers}, {"filters", filters}};
    return static_cast<double>(parameters_of(amoebanet_models(), "amoebanet-d", options)) / 1e6;
  };
  EXPECT_NEAR(millions("18", "208"), 82, 0.82);
  EXPECT_NEAR(millions("18", "416"), 318, 3.2);
  EXPECT_NEAR(millions("18", "544"), 542, 5.4);
  EXPECT_NEAR(millions("36", "544"), 1050, 10.5);
}

TEST(AmoebaNet, cells_halve_and_widen_between_the_thirds) {
  const Graph graph = build(amoebanet_models(), "amoebanet-d",
                            {{"layers", "6"}, {"batch", "1"}, {"training", "false"}});
  const auto shape = [&](const char* name) {
    const auto op = graph.find_op(name);
    EXPECT_TRUE(op.has_value()) << name;
    const auto dims = graph.shape(graph.outputs(*op)[0]);
    return Shape(dims.begin(), dims.end());
  };
  EXPECT_EQ(shape("cell_stem_0.Concat"), (Shape{1, 3 * 104, 56, 56}));
  EXPECT_EQ(shape("cell_1.Concat"), (Shape{1, 4 * 208, 28, 28}));
  EXPECT_EQ(shape("reduction_cell_0.Concat"), (Shape{1, 3 * 416, 14, 14}));
  EXPECT_EQ(shape("cell_5.Concat"), (Shape{1, 4 * 832, 7, 7}));
}

TEST(AmoebaNet, any_size_of_images_works) {
  for (const char* image : {"32", "225", "331"}) {
    EXPECT_EQ(parameters_of(amoebanet_models(), "amoebanet-d", {{"image", image}}), 81'505'540);
  }
}

TEST(AmoebaNet, sizes_that_do_not_divide_are_refused) {
  EXPECT_EQ(error_of(amoebanet_models(), "amoebanet-d", {{"layers", "20"}}),
            "option 'layers': expected a multiple of 3, got 20");
  EXPECT_EQ(error_of(amoebanet_models(), "amoebanet-d", {{"filters", "210"}}),
            "option 'filters': expected a multiple of 8, got 210");
}

TEST(AmoebaNet, trains_in_half_precision) {
  expect_half_precision(build(amoebanet_models(), "amoebanet-d", {{"dtype", "float16"}}));
}

}  // namespace
}  // namespace emplace::zoo
