#include "learn/encoders/additive_attention.h"

#include <gtest/gtest.h>

#include "learn/nn/module.h"

namespace emplace::learn {
namespace {

torch::Tensor in_one_formula(const torch::Tensor& queries, const torch::Tensor& memory,
                             const torch::Tensor& v) {
  const torch::Tensor scores = torch::matmul(torch::tanh(queries.unsqueeze(1) + memory), v);
  return torch::matmul(torch::softmax(scores, 1), memory);
}

class AdditiveAttentionTest : public ::testing::TestWithParam<std::array<std::int64_t, 3>> {};

TEST_P(AdditiveAttentionTest, equals_the_formula_with_all_gradients) {
  const auto [rows, slots, width] = GetParam();
  Rng rng(11);
  const std::vector<torch::Tensor> inputs{2 * normals({rows, width}, rng),
                                          2 * normals({slots, width}, rng), normals({width}, rng)};
  for (const torch::Tensor& input : inputs) input.requires_grad_(true);
  const torch::Tensor by_context = normals({rows, width}, rng);
  const auto gradients = [&](const torch::Tensor& contexts) {
    return torch::autograd::grad({(contexts * by_context).sum()}, inputs);
  };
  const torch::Tensor expected = in_one_formula(inputs[0], inputs[1], inputs[2]);
  const std::vector<torch::Tensor> expected_gradients = gradients(expected);
  for (const auto& attention : {additive_attention, additive_attention_plainly}) {
    const torch::Tensor contexts = attention(inputs[0], inputs[1], inputs[2]);
    EXPECT_TRUE(torch::allclose(contexts, expected, 1e-4, 1e-5));
    const std::vector<torch::Tensor> actual = gradients(contexts);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(torch::allclose(actual[i], expected_gradients[i], 1e-3, 2e-4)) << "input " << i;
    }
  }
  const torch::NoGradGuard no_gradients;
  const AttentionMemory memory(inputs[1], inputs[2]);
  EXPECT_TRUE(torch::allclose(memory.contexts(inputs[0]), expected, 1e-4, 1e-5));
}

INSTANTIATE_TEST_SUITE_P(Shapes, AdditiveAttentionTest,
                         ::testing::Values(std::array<std::int64_t, 3>{1, 1, 1},
                                           std::array<std::int64_t, 3>{3, 5, 7},
                                           std::array<std::int64_t, 3>{6, 4, 8},
                                           std::array<std::int64_t, 3>{10, 43, 24}));

TEST(AdditiveAttention, large_entries_saturate) {
  Rng rng(4);
  const torch::Tensor memory = 19 * (2 * uniforms({6, 8}, rng) - 1);
  const torch::Tensor queries = 19 * (2 * uniforms({5, 8}, rng) - 1);
  const torch::Tensor v = normals({8}, rng);
  const torch::Tensor contexts = additive_attention(queries, memory, v);
  EXPECT_TRUE(torch::allclose(contexts, in_one_formula(queries, memory, v), 1e-4, 1e-4));
  const torch::Tensor beyond = additive_attention(1e6 * queries, 1e6 * memory, v);
  EXPECT_TRUE(torch::isfinite(beyond).all().item<bool>());
}

}  // namespace
}  // namespace emplace::learn
