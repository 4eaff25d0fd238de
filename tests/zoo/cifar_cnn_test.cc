#include "zoo/image_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(CifarCnn, has_the_published_parameters_and_layers) {
  expect_published_parameters(cifar_cnn_models());
  const Graph graph = build_forward(cifar_cnn_models(), "cifar-10-cnn");
  const auto shape = [&](const char* name) {
    const auto op = graph.find_op(name);
    EXPECT_TRUE(op.has_value()) << name;
    const auto dims = graph.shape(graph.outputs(*op)[0]);
    return Shape(dims.begin(), dims.end());
  };
  EXPECT_EQ(shape("conv1.Conv"), (Shape{128, 64, 24, 24}));
  EXPECT_EQ(shape("pool1.MaxPool"), (Shape{128, 64, 12, 12}));
  EXPECT_EQ(shape("norm2.LRN"), (Shape{128, 64, 12, 12}));
  EXPECT_EQ(shape("pool2.MaxPool"), (Shape{128, 64, 6, 6}));
  EXPECT_EQ(shape("local3.weight"), (Shape{384, 2304}));
}

TEST(CifarCnn, step_updates_every_parameter) {
  const Graph graph = build(cifar_cnn_models(), "cifar-10-cnn");
  int updates = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    updates += graph.phase(op) == Phase::kUpdate ? 1 : 0;
  }
  EXPECT_EQ(updates, 10);
}

TEST(CifarCnn, trains_in_half_precision) {
  expect_half_precision(build(cifar_cnn_models(), "cifar-10-cnn", {{"dtype", "float16"}}));
}

TEST(CifarCnn, needs_two_classes) {
  EXPECT_EQ(error_of(cifar_cnn_models(), "cifar-10-cnn", {{"classes", "1"}}),
            "option 'classes': '1' is not a whole number from 2 to 1048576");
}

}  // namespace
}  // namespace emplace::zoo
