#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zoo/attention_models.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

TEST(Llama, has_the_published_parameters) {
  EXPECT_EQ(parameters_of(llama_models(), "llama-7b"), 6'738'415'616);
  EXPECT_EQ(parameters_of(llama_models(), "llama2-13b"), 13'015'864'320);
  EXPECT_EQ(parameters_of(llama_models(), "llama3-8b"), 8'030'261'248);
}

// 2 for each weight but the embedding's and each token, and the products of attention.
TEST(Llama, has_the_flops_of_its_weights_and_of_attention) {
  const Graph forward =
      build_forward(llama_models(), "llama-7b", {{"sequence", "512"}, {"attention", "plain"}});
  const double weights = 6'738'415'616.0 - 32'000.0 * 4096;
  const double attention = 32 * 4.0 * 512 * 512 * 4096;
  EXPECT_NEAR(total_flops(forward, Phase::kForward) / (2 * weights * 512 + attention), 1, 0.01);
}

TEST(Llama, shared_keys_shrink_their_projections_alone) {
  const Graph graph = build(llama_models(), "llama3-8b", {{"training", "false"}, {"layers", "1"}});
  const auto rows = [&](const std::string& name) {
    const std::string op = "model.layers.0.self_attn." + name + ".weight";
    return graph.shape(graph.outputs(graph.find_op(op).value())[0])[0];
  };
  EXPECT_EQ(rows("q_proj"), 4096);
  EXPECT_EQ(rows("k_proj"), 1024);
  EXPECT_EQ(rows("v_proj"), 1024);
}

TEST(Llama, layers_share_one_mask_and_one_table_of_rotations) {
  const Graph graph =
      build_forward(llama_models(), "llama-7b", {{"layers", "3"}, {"attention", "plain"}});
  EXPECT_EQ(forward_readers(graph, "model.causal_mask"), 3U);
  EXPECT_EQ(forward_readers(graph, "model.rotary.cos"), 6U);  // of queries and of keys
}

TEST(Llama, heads_that_do_not_fit_are_refused) {
  EXPECT_THAT(error_of(llama_models(), "llama-7b", {{"kv_heads", "5"}}),
              testing::HasSubstr("32 heads are not a multiple of 5 key heads"));
  EXPECT_THAT(error_of(llama_models(), "llama-7b", {{"heads", "30"}}),
              testing::HasSubstr("4096 is not divisible by 30 heads"));
  EXPECT_THAT(error_of(llama_models(), "llama-7b", {{"heads", "4096"}, {"kv_heads", "4096"}}),
              testing::HasSubstr("expected an even size"));
}

TEST(Llama, trains_in_half_precision) {
  expect_half_precision(build(llama_models(), "llama3-8b", {{"layers", "2"}}));
}

}  // namespace
}  // namespace emplace::zoo
