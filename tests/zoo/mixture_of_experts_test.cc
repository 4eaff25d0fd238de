#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

const OptionValues kSmall = {{"layers", "2"},   {"hidden", "64"},        {"heads", "4"},
                             {"kv_heads", "2"}, {"intermediate", "128"}, {"vocabulary", "100"},
                             {"sequence", "80"}};

Graph small(OptionValues more) {
  OptionValues options = kSmall;
  options.insert(options.end(), more.begin(), more.end());
  return build(mixture_of_experts_models(), "mixtral-8x7b", options);
}

double expert_flops(const Graph& graph) {
  double flops = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const bool expert = graph.module(op).find(".experts.") != std::string_view::npos;
    if (expert && graph.type(op) == "Gemm") flops += static_cast<double>(graph.flops(op).value());
  }
  return flops;
}

TEST(MixtureOfExperts, mixtral_has_the_published_parameters) {
  EXPECT_EQ(parameters_of(mixture_of_experts_models(), "mixtral-8x7b"), 46'702'792'704);
}

TEST(MixtureOfExperts, every_expert_takes_its_capacity_of_tokens) {
  // 80 tokens choose 2 experts each: 20 for each of 8, and a quarter more.
  const Graph graph = small({{"training", "false"}});
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("model.layers.1.block_sparse_moe.experts.{}.Gather", i);
    const auto shape = graph.shape(graph.outputs(graph.find_op(name).value())[0]);
    EXPECT_THAT(shape, testing::ElementsAre(25, 64));
  }
}

TEST(MixtureOfExperts, an_expert_never_takes_more_tokens_than_there_are) {
  const Graph graph = small({{"training", "false"}, {"capacity", "1000"}});
  const auto op = graph.find_op("model.layers.0.block_sparse_moe.experts.0.Gather");
  EXPECT_EQ(graph.shape(graph.outputs(op.value())[0])[0], 80);
}

TEST(MixtureOfExperts, flops_of_experts_grow_with_their_capacity) {
  const double once = expert_flops(small({{"training", "false"}, {"capacity", "1"}}));
  const double twice = expert_flops(small({{"training", "false"}, {"capacity", "2"}}));
  EXPECT_DOUBLE_EQ(twice, 2 * once);
  // Three products for each of two layers' 160 choices.
  EXPECT_DOUBLE_EQ(once, 2 * 160 * 3 * 2.0 * 64 * 128);
}

TEST(MixtureOfExperts, experts_of_a_layer_do_not_wait_for_each_other) {
  const Graph graph = small({{"training", "false"}});
  const auto of_expert = [&](OpId op, const char* expert) {
    return graph.module(op).find(expert) != std::string_view::npos;
  };
  std::size_t ops = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!of_expert(op, "layers.0.block_sparse_moe.experts.3")) continue;
    ++ops;
    for (const TensorId input : graph.inputs(op)) {
      const OpId from = graph.producer(input);
      const bool other = of_expert(from, "layers.0.block_sparse_moe.experts") &&
                         !of_expert(from, "layers.0.block_sparse_moe.experts.3");
      EXPECT_FALSE(other) << graph.op_name(op);
    }
  }
  EXPECT_GT(ops, 10U);
}

TEST(MixtureOfExperts, trains_router_and_experts_in_half_precision) {
  const Graph step = small({});
  expect_half_precision(step);
  for (const std::string name : {"gate", "experts.0.w1", "experts.7.w2"}) {
    const std::string update = "model.layers.0.block_sparse_moe." + name + ".weight/update";
    EXPECT_TRUE(step.find_op(update).has_value()) << update;
  }
}

TEST(MixtureOfExperts, more_choices_than_experts_are_refused) {
  EXPECT_THAT(error_of(mixture_of_experts_models(), "mixtral-8x7b", {{"chosen", "9"}}),
              testing::HasSubstr("cannot choose 9 of 8 experts"));
}

}  // namespace
}  // namespace emplace::zoo
