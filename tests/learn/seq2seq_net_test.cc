#include "learn/policies/seq2seq_net.h"

#include <gtest/gtest.h>

#include "learn/nn/module.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kSteps = 7;
constexpr std::int64_t kDevices = 3;
constexpr std::int64_t kCount = 5;

struct Case {
  const char* name;
  Seq2SeqSettings settings;
};

class Seq2SeqTest : public ::testing::TestWithParam<Case> {
 protected:
  Seq2SeqTest()
      : rng_(5),
        net_(parameters_, "net", 6, kDevices, GetParam().settings, rng_),
        inputs_(normals({kSteps, 6}, rng_)),
        mask_(torch::zeros({kSteps, kDevices})),
        uniform_(uniforms({kCount, kSteps}, rng_)),
        noise_(normals({kCount, kSteps, kDevices}, rng_)) {
    mask_[2][0] = -1e9F;
    mask_[4][1] = -1e9F;
    mask_[4][2] = -1e9F;
  }

  Rng rng_;
  Parameters parameters_;
  Seq2Seq net_;
  torch::Tensor inputs_, mask_, uniform_, noise_;
};

TEST_P(Seq2SeqTest, scores_equal_those_of_sampling) {
  for (const torch::Tensor& noise : {torch::Tensor(), noise_}) {
    const Seq2Seq::Decoded decoded = net_.sample(inputs_, mask_, uniform_, noise);
    const torch::Tensor scored = net_.score(inputs_, mask_, decoded.actions, noise);
    EXPECT_EQ(scored.sizes(), decoded.distributions.sizes());
    EXPECT_TRUE(torch::allclose(scored, decoded.distributions, 1e-5, 1e-5));
    EXPECT_TRUE(scored.requires_grad());
    EXPECT_FALSE(decoded.distributions.requires_grad());
  }
}

TEST_P(Seq2SeqTest, samples_as_plain_operations_do) {
  for (const torch::Tensor& noise : {torch::Tensor(), noise_}) {
    Seq2SeqState by_loops, by_operations;
    const Seq2Seq::Decoded loops = net_.sample(inputs_, mask_, uniform_, noise, &by_loops);
    const Seq2Seq::Decoded plain =
        net_.sample_plainly(inputs_, mask_, uniform_, noise, &by_operations);
    EXPECT_TRUE(torch::equal(loops.actions, plain.actions));
    EXPECT_TRUE(torch::allclose(loops.distributions, plain.distributions, 1e-5, 1e-5));
    EXPECT_TRUE(torch::allclose(by_loops.decoder_h, by_operations.decoder_h, 1e-5, 1e-5));
    EXPECT_TRUE(torch::equal(by_loops.previous, by_operations.previous));
  }
}

TEST_P(Seq2SeqTest, likeliest_devices_are_chosen_without_random_numbers) {
  const Seq2Seq::Decoded decoded = net_.sample(inputs_, mask_, {});
  EXPECT_EQ(decoded.actions.sizes(), (std::vector<std::int64_t>{1, kSteps}));
  EXPECT_TRUE(torch::equal(decoded.actions, decoded.distributions.argmax(-1)));
  EXPECT_TRUE(torch::allclose(net_.score(inputs_, mask_, decoded.actions), decoded.distributions,
                              1e-5, 1e-5));
}

TEST_P(Seq2SeqTest, masked_devices_are_not_chosen) {
  const torch::Tensor many = uniforms({200, kSteps}, rng_);
  const torch::Tensor actions = net_.sample(inputs_, mask_, many).actions;
  EXPECT_EQ((actions.select(1, 2) == 0).sum().item<std::int64_t>(), 0);
  EXPECT_EQ((actions.select(1, 4) != 0).sum().item<std::int64_t>(), 0);
  EXPECT_GT((actions.select(1, 2) == 1).sum().item<std::int64_t>(), 0);
  EXPECT_GT((actions.select(1, 2) == 2).sum().item<std::int64_t>(), 0);
}

TEST_P(Seq2SeqTest, previous_devices_matter) {
  const torch::Tensor zeros = torch::zeros({1, kSteps}, torch::kInt64);
  torch::Tensor other = zeros.clone();
  other[0][1] = 1;
  const torch::Tensor before = net_.score(inputs_, mask_, zeros);
  const torch::Tensor after = net_.score(inputs_, mask_, other);
  EXPECT_TRUE(torch::equal(before.narrow(1, 0, 2), after.narrow(1, 0, 2)));
  EXPECT_FALSE(torch::allclose(before.narrow(1, 3, 1), after.narrow(1, 3, 1)));
}

TEST_P(Seq2SeqTest, segments_are_scored_as_they_were_sampled) {
  Seq2SeqState sampling;
  Seq2SeqState scoring;
  for (const auto& [first, count] : {std::pair<int, int>{0, 3}, {3, 1}, {4, 3}}) {
    const torch::Tensor inputs = inputs_.narrow(0, first, count);
    const torch::Tensor mask = mask_.narrow(0, first, count);
    const Seq2Seq::Decoded decoded =
        net_.sample(inputs, mask, uniform_.narrow(1, first, count), {}, &sampling);
    const torch::Tensor scored = net_.score(inputs, mask, decoded.actions, {}, &scoring);
    EXPECT_TRUE(torch::allclose(scored, decoded.distributions, 1e-5, 1e-5));
    EXPECT_TRUE(torch::equal(scoring.previous, sampling.previous));
    EXPECT_TRUE(torch::allclose(scoring.decoder_c, sampling.decoder_c, 1e-5, 1e-5));
    EXPECT_TRUE(torch::allclose(scoring.encoder_h, sampling.encoder_h, 1e-5, 1e-5));
  }
}

// What the decoder of a later segment does depends on all earlier ones.
TEST_P(Seq2SeqTest, carried_state_matters) {
  Seq2SeqState state;
  net_.sample(inputs_.narrow(0, 0, 3), mask_.narrow(0, 0, 3), uniform_.narrow(1, 0, 3), {}, &state);
  const torch::Tensor actions = torch::zeros({kCount, 4}, torch::kInt64);
  const torch::Tensor rest = inputs_.narrow(0, 3, 4);
  const torch::Tensor rest_mask = mask_.narrow(0, 3, 4);
  const torch::Tensor alone = net_.score(rest, rest_mask, actions);
  const torch::Tensor carried = net_.score(rest, rest_mask, actions, {}, &state);
  EXPECT_FALSE(torch::allclose(alone.narrow(1, 3, 1), carried.narrow(1, 3, 1)));
}

// Without noise, whose size follows the logits but not for the gradient.
TEST_P(Seq2SeqTest, gradients_agree_with_finite_differences) {
  const Seq2Seq::Decoded decoded = net_.sample(inputs_, mask_, uniform_);
  const auto loss = [&] {
    return log_prob_of(net_.score(inputs_, mask_, decoded.actions), decoded.actions).sum();
  };
  const std::vector<torch::Tensor> gradients =
      torch::autograd::grad({loss()}, parameters_.tensors());
  constexpr double kStep = 5e-3;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor direction = normals(parameters_.named()[i].second.sizes().vec(), rng_);
    torch::Tensor parameter = parameters_.named()[i].second;
    parameter.add_(direction, kStep);
    const double above = loss().item<double>();
    parameter.sub_(direction, 2 * kStep);
    const double below = loss().item<double>();
    parameter.add_(direction, kStep);
    const double expected = (above - below) / (2 * kStep);
    const double actual = (gradients[i] * direction).sum().item<double>();
    EXPECT_NEAR(actual, expected, 1e-2 + 2e-2 * std::abs(expected)) << parameters_.named()[i].first;
  }
}

TEST(Seq2Seq, logits_are_shaped) {
  Rng rng(3);
  Parameters parameters;
  const Seq2Seq net(parameters, "net", 4, 3, {.width = 8, .tanh_constant = 0.5}, rng);
  for (const torch::Tensor& tensor : parameters.tensors()) {
    const torch::NoGradGuard no_gradients;
    tensor.mul_(30);
  }
  const torch::Tensor logs =
      net.sample(normals({6, 4}, rng), torch::zeros({6, 3}), uniforms({9, 6}, rng)).distributions;
  EXPECT_LE((logs.amax(2) - logs.amin(2)).max().item<float>(), 1.0001F);
  EXPECT_GT((logs.amax(2) - logs.amin(2)).max().item<float>(), 0.9F);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Seq2SeqTest,
    ::testing::Values(Case{"Forward", {.width = 8}},
                      Case{"BothWays", {.width = 8, .bidirectional = true}},
                      Case{"SeesMemory",
                           {.width = 8, .bidirectional = true, .decoder_sees_memory = true}},
                      Case{"Shaped", {.width = 12, .tanh_constant = 5, .temperature = 10}}),
    [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace emplace::learn
