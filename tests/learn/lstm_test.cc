#include "learn/encoders/lstm.h"

#include <gtest/gtest.h>

#include "learn/encoders/vector_loops.h"

namespace emplace::learn {
namespace {

TEST(VectorLoops, exponentials_are_exact_to_a_few_units) {
  double worst = 0;
  for (double x = -80; x < 80; x += 0.0371) {
    const double expected = std::exp(static_cast<double>(static_cast<float>(x)));
    worst = std::max(worst, std::abs(quick_exp(static_cast<float>(x)) / expected - 1));
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_FLOAT_EQ(quick_tanh(0.3F), std::tanh(0.3F));
  EXPECT_FLOAT_EQ(quick_tanh(-90), -1);
  EXPECT_FLOAT_EQ(quick_tanh(1000), 1);
  EXPECT_FLOAT_EQ(quick_sigmoid(-1), 1 / (1 + std::exp(1.0F)));
  EXPECT_LT(quick_sigmoid(-1000), 1e-30);
}

class LstmTest : public ::testing::TestWithParam<std::array<std::int64_t, 3>> {};

// Every output is weighted, so that every gradient takes part.
TEST_P(LstmTest, equals_plain_operations_with_all_gradients) {
  const auto [steps, batch, width] = GetParam();
  Rng rng(7);
  const LstmWeights weights{.recurrent = normals({width, 4 * width}, rng) * 0.5,
                            .forget_bias = torch::full({1}, 0.7F)};
  const std::vector<torch::Tensor> inputs{
      normals({steps, batch, 4 * width}, rng), weights.recurrent, weights.forget_bias,
      normals({batch, width}, rng), normals({batch, width}, rng)};
  for (const torch::Tensor& input : inputs) input.requires_grad_(true);
  const torch::Tensor by_state = normals({steps, batch, width}, rng);
  const torch::Tensor by_c = normals({batch, width}, rng);
  const auto gradients = [&](const LstmOutput& output) {
    return torch::autograd::grad(
        {(output.states * by_state).sum() + (output.last.c * by_c).sum() + output.last.h.sum()},
        inputs);
  };
  const LstmState begin{.h = inputs[3], .c = inputs[4]};
  const LstmOutput loops = run_lstm(weights, inputs[0], begin);
  const LstmOutput plain = run_lstm_plainly(weights, inputs[0], begin);
  EXPECT_TRUE(torch::allclose(loops.states, plain.states, 1e-5, 1e-5));
  EXPECT_TRUE(torch::allclose(loops.last.h, plain.last.h, 1e-5, 1e-5));
  EXPECT_TRUE(torch::allclose(loops.last.c, plain.last.c, 1e-5, 1e-5));
  const std::vector<torch::Tensor> by_loops = gradients(loops);
  const std::vector<torch::Tensor> by_plain = gradients(plain);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(torch::allclose(by_loops[i], by_plain[i], 1e-3, 1e-4)) << "input " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LstmTest,
                         ::testing::Values(std::array<std::int64_t, 3>{1, 1, 1},
                                           std::array<std::int64_t, 3>{5, 1, 16},
                                           std::array<std::int64_t, 3>{9, 4, 7},
                                           std::array<std::int64_t, 3>{12, 3, 40}));

TEST(Lstm, segments_with_carried_state_equal_one_long_sequence) {
  Rng rng(2);
  Parameters parameters;
  const Lstm lstm(parameters, "lstm", 5, 8, rng);
  const torch::Tensor projected = lstm.project(normals({10, 3, 5}, rng));
  const LstmOutput whole = lstm.run(projected);
  const LstmOutput first = lstm.run(projected.narrow(0, 0, 4));
  const LstmOutput second = lstm.run(projected.narrow(0, 4, 6), first.last);
  EXPECT_TRUE(torch::allclose(whole.states, torch::cat({first.states, second.states}), 1e-6, 1e-6));
  EXPECT_TRUE(torch::allclose(whole.last.c, second.last.c, 1e-6, 1e-6));
}

}  // namespace
}  // namespace emplace::learn
