// The random families: reproducible from the seed, varied, and of the sizes that they promise.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "zoo/built_graphs.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr int kSeeds = 32;  // as many graphs as Placeto's families have

using Family = std::vector<ModelInfo> (*)();

ModelInfo family(const std::string& name) {
  const std::map<std::string, Family> families{
      {"cifar10", cifar10_family}, {"ptb", ptb_family}, {"nmt", nmt_family}};
  return families.at(name)().at(0);
}

class Families : public testing::TestWithParam<const char*> {
 protected:
  Graph graph(int seed, OptionValues options = {}) const {
    options.emplace_back("seed", fmt::format("{}", seed));
    return info_.build(options, {});
  }
  std::string error(const OptionValues& options) const {
    return error_of({info_}, GetParam(), options);
  }

  const ModelInfo info_ = family(GetParam());
};

TEST_P(Families, give_the_same_graph_for_the_same_seed) {
  for (const int seed : {0, 1, 17}) EXPECT_EQ(difference(graph(seed), graph(seed)), "") << seed;
  EXPECT_EQ(difference(graph(0), info_.build({}, {})), "");
}

TEST_P(Families, give_different_graphs_for_different_seeds) {
  std::set<std::pair<OpId, std::int64_t>> sizes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Graph one = graph(seed);
    EXPECT_NE(difference(one, graph(seed + 1)), "") << seed;
    sizes.emplace(one.num_ops(), count_parameters(one));
  }
  EXPECT_GE(sizes.size(), 20U);
}

TEST_P(Families, have_a_few_hundred_to_several_thousand_ops) {
  OpId fewest = kNoOp;
  OpId most = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const OpId ops = graph(seed).num_ops();
    fewest = std::min(fewest, ops);
    most = std::max(most, ops);
  }
  EXPECT_GE(fewest, 500U);
  EXPECT_LE(most, 9000U);
  EXPECT_GE(most, 2 * fewest);
}

TEST_P(Families, keep_the_seeds_other_decisions_when_an_option_is_given) {
  for (int seed = 0; seed < 8; ++seed) {
    const Graph free = graph(seed, {{"training", "false"}});
    const Graph given = graph(seed, {{"training", "false"}, {"batch", "3"}});
    ASSERT_EQ(free.num_ops(), given.num_ops());
    EXPECT_EQ(count_parameters(free), count_parameters(given));
    for (OpId op = 0; op < free.num_ops(); ++op) {
      EXPECT_EQ(free.op_name(op), given.op_name(op));
      if (given.role(op) != OpRole::kInput) continue;
      EXPECT_EQ(given.shape(given.outputs(op)[0])[0], 3);
    }
  }
}

TEST_P(Families, train_every_parameter) {
  for (int seed = 0; seed < 8; ++seed) {
    const Graph one = graph(seed);
    std::size_t parameters = 0;
    std::size_t updates = 0;
    for (OpId op = 0; op < one.num_ops(); ++op) {
      parameters += one.role(op) == OpRole::kParameter ? 1 : 0;
      updates += one.phase(op) == Phase::kUpdate ? 1 : 0;
    }
    EXPECT_EQ(updates, parameters) << seed;
  }
}

TEST_P(Families, take_the_element_type_that_is_asked_for) {
  expect_half_precision(graph(5, {{"dtype", "float16"}}));
}

TEST_P(Families, say_what_an_option_may_be) {
  EXPECT_NE(error({{"seed", "-1"}}).find("seed"), std::string::npos);
  EXPECT_NE(error({{"depth", "3"}}).find("expected one of"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Zoo, Families, testing::Values("cifar10", "ptb", "nmt"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Cifar10Family, refuses_filters_that_a_reduction_cannot_halve) {
  const std::string error = error_of(cifar10_family(), "cifar10", {{"filters", "15"}});
  EXPECT_NE(error.find("expected an even number"), std::string::npos) << error;
}

TEST(Cifar10Family, halves_the_image_and_doubles_the_filters_twice) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = build_forward(cifar10_family(), "cifar10",
                                      {{"seed", fmt::format("{}", seed)}, {"filters", "16"}});
    const auto pools = ops_of(graph, "", "GlobalAveragePool");
    ASSERT_EQ(pools.size(), 1U);
    const auto shape = graph.shape(graph.inputs(pools[0])[0]);
    EXPECT_EQ(shape[1] % 64, 0);
    EXPECT_EQ(shape[2], 8);
  }
}

// Every cell has each of its nodes, and every node ends in the addition of its two branches.
TEST(Cifar10Family, has_the_nodes_that_are_asked_for) {
  const Graph graph = build_forward(cifar10_family(), "cifar10", {{"nodes", "5"}, {"cells", "2"}});
  for (int cell = 0; cell < 8; ++cell) {
    for (int node = 0; node < 5; ++node) {
      EXPECT_EQ(ops_of(graph, fmt::format("cell.{}.node.{}", cell, node), "Add").size(), 1U);
    }
  }
  EXPECT_TRUE(ops_of(graph, "cell.8.node.0", "Add").empty());
  EXPECT_TRUE(ops_of(graph, "cell.0.node.5", "Add").empty());
}

TEST(PtbFamily, repeats_the_cell_at_every_step) {
  const OptionValues options{{"seed", "3"}, {"nodes", "6"}, {"sequence", "9"}};
  const Graph graph = build_forward(ptb_family(), "ptb", options);
  for (int node = 0; node < 6; ++node) {
    const auto weight = graph.find_op(fmt::format("cell.node.{}.weight", node));
    ASSERT_TRUE(weight.has_value()) << node;
    EXPECT_EQ(graph.consumers(graph.outputs(*weight)[0]).size(), 9U);
  }
}

TEST(PtbFamily, uses_the_word_vectors_for_the_softmax) {
  const Graph graph = build_forward(ptb_family(), "ptb", {{"sequence", "9"}});
  const auto table = graph.find_op("embedding.weight");
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(graph.consumers(graph.outputs(*table)[0]).size(), 18U);
  EXPECT_EQ(ops_of(graph, "softmax", "parameter").size(), 0U);
}

TEST(NmtFamily, says_that_it_needs_two_layers) {
  const std::string error = error_of(nmt_family(), "nmt", {{"layers", "1"}});
  EXPECT_NE(error.find("layers"), std::string::npos) << error;
}

}  // namespace
}  // namespace emplace::zoo
