#include "io/onnx_training_notes.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/layers.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Branch { kPlain, kScaled, kNone };

struct NotedNetwork {
  bool norms = false;
  bool pooled = true;
  Branch branch = Branch::kPlain;
};

// Convolutions with biases, in pairs, and a classifier.
Graph images(const NotedNetwork& network) {
  zoo::Net net("images");
  zoo::Value x = net.input("x", {2, 3, 16, 16});
  x = zoo::conv_layer(net, "stem", x, 8, zoo::same(3), true);
  for (int i = 0; i < 4; ++i) {
    const auto scope = net.scope("blocks", i);
    zoo::Value y = zoo::relu(net, zoo::conv_layer(net, "a", x, 8, zoo::same(3), true));
    y = zoo::conv_layer(net, "b", y, 8, zoo::same(3), true);
    if (network.norms) y = zoo::batch_norm(net, "bn", y);
    if (network.branch == Branch::kScaled) y = zoo::scale(net, y, 0.2);
    x = network.branch == Branch::kNone ? y : zoo::add(net, x, y);
    x = zoo::relu(net, x);
  }
  if (network.pooled) zoo::linear(net, "fc", zoo::global_average_pool(net, x), 10);
  return std::move(net).build();
}

TEST(TrainingNotes, residual_classifiers_without_a_norm_had_theirs_folded) {
  EXPECT_THAT(training_notes(images({})),
              ElementsAre(testing::AllOf(HasSubstr("9 convolutions have batch norms folded"),
                                         HasSubstr("TrainingMode.TRAINING"))));
}

TEST(TrainingNotes, networks_that_have_norms_or_need_none_are_left_alone) {
  EXPECT_THAT(training_notes(images({.norms = true})), IsEmpty());
  EXPECT_THAT(training_notes(images({.branch = Branch::kNone})), IsEmpty()) << "VGG";
  EXPECT_THAT(training_notes(images({.branch = Branch::kScaled})), IsEmpty()) << "NFNet";
  EXPECT_THAT(training_notes(images({.pooled = false})), IsEmpty()) << "super-resolution";
}

// Blocks that weigh their channels by what a pool sees of them, and images as the result.
Graph channel_attention() {
  zoo::Net net("rcan");
  zoo::Value x =
      zoo::conv_layer(net, "head", net.input("x", {2, 3, 16, 16}), 8, zoo::same(3), true);
  for (int i = 0; i < 4; ++i) {
    const auto scope = net.scope("blocks", i);
    zoo::Value y = zoo::relu(net, zoo::conv_layer(net, "a", x, 8, zoo::same(3), true));
    const zoo::Value pooled = zoo::linear(net, "weigh", zoo::global_average_pool(net, y), 8);
    y = zoo::mul(net, y, zoo::reshape(net, pooled, {2, 8, 1, 1}));
    x = zoo::add(net, x, zoo::conv_layer(net, "b", y, 8, zoo::same(3), true));
  }
  zoo::conv_layer(net, "tail", x, 3, zoo::same(3), true);
  return std::move(net).build();
}

TEST(TrainingNotes, networks_that_make_images_may_pool_and_have_no_norms) {
  EXPECT_THAT(training_notes(channel_attention()), IsEmpty());
}

Graph two_convolutions(const std::string& weight, const std::string& bias) {
  zoo::Net net("computed");
  const zoo::Value x = net.input("x", {2, 3, 16, 16});
  const zoo::Value w = net.parameter(weight, {3, 3, 3, 3});
  const zoo::Value y = zoo::conv(net, x, w, net.parameter(bias, {3}), zoo::same(3));
  zoo::linear(net, "fc", zoo::global_average_pool(net, y), 10);
  return std::move(net).build();
}

TEST(TrainingNotes, weights_that_the_export_computed_are_folded_norms) {
  const std::string said = "1 convolutions have batch norms folded";
  EXPECT_THAT(training_notes(two_convolutions("onnx::Conv_497", "onnx::Conv_498")),
              ElementsAre(HasSubstr(said)));
  EXPECT_THAT(training_notes(two_convolutions("497", "498")), ElementsAre(HasSubstr(said)));
  EXPECT_THAT(training_notes(two_convolutions("features.0.weight", "features.0.bias")), IsEmpty());
  EXPECT_THAT(training_notes(two_convolutions("onnx::Conv_497", "conv.bias")), IsEmpty())
      << "weights that were normalised themselves";
}

// Four layers, which share what is given.
Graph layers_sharing(bool scales, bool matrices) {
  zoo::Net net("layers");
  zoo::Value x = net.input("x", {2, 8});
  const zoo::Value one = net.parameter("ones", {8});
  const zoo::Value matrix = net.parameter("matrix", {8, 8});
  for (int i = 0; i < 4; ++i) {
    const auto scope = net.scope("layers", i);
    const zoo::Value scale = scales ? one : net.parameter("scale", {8});
    x = net.add_one("LayerNormalization", {x, scale, net.parameter("bias", {8})},
                    tensor_type(x.shape, x.dtype));
    x = zoo::gemm(net, x, matrices ? matrix : net.parameter("weight", {8, 8}), std::nullopt);
  }
  return std::move(net).build();
}

TEST(TrainingNotes, initializers_that_were_equal_are_merged) {
  // Three times 8 numbers are missing.
  EXPECT_THAT(training_notes(layers_sharing(true, false)),
              ElementsAre(testing::AllOf(HasSubstr("1 of the file's initializers"),
                                         HasSubstr("4 in all"), HasSubstr("96 B"))));
  EXPECT_THAT(training_notes(layers_sharing(false, false)), IsEmpty());
  EXPECT_THAT(training_notes(layers_sharing(true, true)), IsEmpty()) << "whole layers are shared";
}

// Four layers that share what their positions are made of, which is no weight of theirs, and
// their norms' scales where these are merged.
Graph rotary(bool merged) {
  zoo::Net net("rotary");
  zoo::Value x = net.input("x", {6, 8});
  const zoo::Value positions = net.input("positions", {6, 1});
  const zoo::Value frequencies = net.parameter("inv_freq", {8});
  const zoo::Value table = net.parameter("cos_cached", {6, 8});
  const zoo::Value ones = net.parameter("ones", {8});
  for (int i = 0; i < 4; ++i) {
    const auto scope = net.scope("layers", i);
    const zoo::Value scale = merged ? ones : net.parameter("scale", {8});
    x = net.add_one("SimplifiedLayerNormalization", {x, scale}, tensor_type(x.shape, x.dtype));
    x = zoo::gemm(net, x, net.parameter("weight", {8, 8}), std::nullopt);
    x = zoo::add(net, zoo::mul(net, x, table), zoo::mul(net, positions, frequencies));
  }
  return std::move(net).build();
}

TEST(TrainingNotes, shared_buffers_of_positions_are_neither_merged_weights_nor_shared_layers) {
  EXPECT_THAT(training_notes(rotary(false)), IsEmpty());
  EXPECT_THAT(training_notes(rotary(true)), ElementsAre(HasSubstr("1 of the file's initializers")));
}

TEST(TrainingNotes, no_model_of_the_zoo_has_any) {
  for (const zoo::ModelInfo& info : zoo::models()) {
    const Graph forward = info.build({{"batch", "1"}, {"training", "false"}}, {});
    EXPECT_THAT(training_notes(forward), IsEmpty()) << info.name;
  }
}

}  // namespace
}  // namespace emplace
