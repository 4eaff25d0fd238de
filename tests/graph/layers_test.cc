#include "graph/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace emplace {
namespace {

using testing::ElementsAre;

std::vector<std::string> layers_named(std::vector<std::string> names) {
  Modules modules;
  modules.names = std::move(names);
  return layers_of_modules(modules);
}

TEST(Layers, are_numbered_blocks_with_all_that_is_in_them) {
  EXPECT_THAT(layers_named({"bert.embeddings.word", "bert.encoder.layer.0.attention.query",
                            "bert.encoder.layer.0.mlp", "bert.encoder.layer.11.mlp",
                            "bert.pooler.dense", "classifier"}),
              ElementsAre("bert.embeddings", "bert.encoder.layer.0", "bert.encoder.layer.0",
                          "bert.encoder.layer.11", "bert.pooler", "classifier"));
}

TEST(Layers, are_the_outermost_blocks) {
  EXPECT_THAT(layers_named({"features.0.conv.0", "features.0.conv.1", "features.1.conv.0"}),
              ElementsAre("features.0", "features.0", "features.1"));
  EXPECT_THAT(
      layers_named({"conv1", "layer1.0.conv1", "layer1.1.conv1", "layer2.0.bn", "layer2.1.bn"}),
      ElementsAre("conv1", "layer1.0", "layer1.1", "layer2.0", "layer2.1"));
  EXPECT_THAT(layers_named({"0", "1", "1.inner"}), ElementsAre("0", "1", "1"));
}

TEST(Layers, one_number_is_no_stack) {
  EXPECT_THAT(layers_named({"stem.0.conv", "stem.act", "head"}),
              ElementsAre("stem", "stem", "head"));
}

TEST(Layers, what_is_around_everything_does_not_count) {
  EXPECT_THAT(layers_named({"net.stem.conv", "net.stem.bn", "net.head"}),
              ElementsAre("net.stem", "net.stem", "net.head"));
  EXPECT_THAT(layers_named({"net", "net.head.fc"}), ElementsAre("net", "net.head"));
  EXPECT_THAT(layers_named({"only"}), ElementsAre("only"));
}

TEST(Layers, modules_without_a_name_are_of_none) {
  EXPECT_THAT(layers_named({"", "a.b", "c"}), ElementsAre("", "a", "c"));
}

}  // namespace
}  // namespace emplace
