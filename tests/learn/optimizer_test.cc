#include "learn/nn/optimizer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"

#include "learn/nn/module.h"

namespace emplace::learn {
namespace {

torch::Tensor parameter(std::vector<float> values) {
  return torch::tensor(values).requires_grad_(true);
}

float at(const torch::Tensor& tensor, std::int64_t i) {
  return tensor[i].item<float>();
}

TEST(Optimizer, plain_steps_go_against_the_gradient) {
  const torch::Tensor x = parameter({1, 2});
  Optimizer optimizer({.adam = false, .learning_rate = 0.5});
  EXPECT_DOUBLE_EQ(optimizer.step({x}, {torch::tensor({3.0F, -4.0F})}), 5);
  EXPECT_FLOAT_EQ(at(x, 0), 1 - 1.5F);
  EXPECT_FLOAT_EQ(at(x, 1), 2 + 2.0F);
  optimizer.step({x}, {torch::tensor({1.0F, 0.0F})}, /*rate_factor=*/2);
  EXPECT_FLOAT_EQ(at(x, 0), -1.5F);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Optimizer, clips_the_norm_over_all_parameters) {
  const torch::Tensor x = parameter({0});
  const torch::Tensor y = parameter({0});
  Optimizer optimizer({.adam = false, .learning_rate = 1, .clip_norm = 1});
  EXPECT_NEAR(optimizer.step({x, y}, {torch::tensor({3.0F}), torch::tensor({4.0F})}), 5, 1e-6);
  EXPECT_NEAR(at(x, 0), -0.6, 1e-5);
  EXPECT_NEAR(at(y, 0), -0.8, 1e-5);
}

TEST(Optimizer, takes_no_step_along_what_is_not_finite) {
  const torch::Tensor x = parameter({1, 2});
  Optimizer optimizer({.clip_norm = 1});
  EXPECT_FALSE(std::isfinite(optimizer.step({x}, {torch::tensor({NAN, 1.0F})})));
  EXPECT_EQ(at(x, 0), 1);
  EXPECT_EQ(at(x, 1), 2);
}

TEST(Optimizer, rate_falls_to_its_final_share) {
  const torch::Tensor x = parameter({0});
  Optimizer optimizer({.adam = false, .learning_rate = 1, .final_share = 0.5, .decay_steps = 2});
  std::vector<float> moved;
  for (int i = 0; i < 4; ++i) {
    const float before = at(x, 0);
    optimizer.step({x}, {torch::tensor({1.0F})});
    moved.push_back(before - at(x, 0));
  }
  EXPECT_EQ(moved, (std::vector<float>{1, 0.75F, 0.5F, 0.5F}));
}

TEST(Optimizer, rate_falls_in_stairs) {
  const torch::Tensor x = parameter({0});
  Optimizer optimizer({.adam = false,
                       .learning_rate = 1,
                       .stair_factor = 0.5,
                       .stair_steps = 2,
                       .stairs_after = 1});
  std::vector<float> moved;
  for (int i = 0; i < 6; ++i) {
    const float before = at(x, 0);
    optimizer.step({x}, {torch::tensor({1.0F})});
    moved.push_back(before - at(x, 0));
  }
  EXPECT_EQ(moved, (std::vector<float>{1, 1, 1, 0.5F, 0.5F, 0.25F}));
}

// A step from 0, 0 along (-3, -4) of parameters that belong to the part and do not.
std::pair<float, float> step_of_two(const OptimizerPart& part, double clip_norm) {
  Parameters parameters;
  const torch::Tensor own = parameters.constant("grouper.x", {1}, 0);
  const torch::Tensor other = parameters.constant("placer.x", {1}, 0);
  Optimizer optimizer({.adam = false, .learning_rate = 1, .clip_norm = clip_norm, .part = part});
  EXPECT_NEAR(optimizer.step(parameters, {torch::tensor({-3.0F}), torch::tensor({-4.0F})}), 5,
              1e-6);
  return {at(own, 0), at(other, 0)};
}

TEST(Optimizer, a_part_has_its_own_rate) {
  const auto [own, other] = step_of_two({.prefix = "grouper.", .learning_rate = 0.25}, 0);
  EXPECT_FLOAT_EQ(own, 0.75);
  EXPECT_FLOAT_EQ(other, 4);
  const auto [same, as_others] = step_of_two({.prefix = "grouper."}, 0);
  EXPECT_FLOAT_EQ(same, 3);
  EXPECT_FLOAT_EQ(as_others, 4);
}

TEST(Optimizer, a_part_is_clipped_by_itself_or_with_the_others) {
  const auto [own, other] = step_of_two({.prefix = "grouper.", .clip_norm = 0.5}, 2);
  EXPECT_NEAR(own, 0.5, 1e-5);
  EXPECT_NEAR(other, 2, 1e-5);
  const auto [together, others] = step_of_two({.prefix = "grouper."}, 1);
  EXPECT_NEAR(together, 0.6, 1e-5);
  EXPECT_NEAR(others, 0.8, 1e-5);
}

// As published, one number at a time.
TEST(Optimizer, adam_is_adam) {
  const torch::Tensor x = parameter({1});
  Optimizer optimizer({.learning_rate = 0.1});
  double value = 1, mean = 0, square = 0;
  for (int step = 1; step <= 5; ++step) {
    const double gradient = std::sin(step);
    mean = 0.9 * mean + 0.1 * gradient;
    square = 0.999 * square + 0.001 * gradient * gradient;
    value -= 0.1 * (mean / (1 - std::pow(0.9, step))) /
             (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
    optimizer.step({x}, {torch::tensor({static_cast<float>(gradient)})});
    EXPECT_NEAR(at(x, 0), value, 1e-5);
  }
}

TEST(Optimizer, goes_on_bit_for_bit_after_a_checkpoint) {
  Rng rng(3);
  const std::vector<torch::Tensor> whole{parameter({1, 2, 3}), parameter({4})};
  const std::vector<torch::Tensor> parts{parameter({1, 2, 3}), parameter({4})};
  const OptimizerSettings settings{.learning_rate = 0.1, .clip_norm = 1};
  Optimizer one(settings);
  auto other = std::make_unique<Optimizer>(settings);
  for (int i = 0; i < 6; ++i) {
    const std::vector<torch::Tensor> gradient{normals({3}, rng), normals({1}, rng)};
    one.step(whole, {gradient[0].clone(), gradient[1].clone()});
    // Twice at once, too: what was loaded is saved before it is used.
    for (int times = 0; times < i; ++times) {
      StateWriter state;
      other->save(state, "o");
      other = std::make_unique<Optimizer>(settings);
      other->load(StateReader(state.bytes(), "run.checkpoint"), "o", torch::kCPU);
    }
    other->step(parts, gradient);
    for (std::size_t p = 0; p < whole.size(); ++p) EXPECT_TRUE(torch::equal(whole[p], parts[p]));
  }
}

TEST(Optimizer, refuses_what_is_of_other_parameters) {
  Optimizer saved({});
  saved.step({parameter({1, 2})}, {torch::tensor({1.0F, 1.0F})});
  StateWriter state;
  saved.save(state, "o");
  for (const std::vector<torch::Tensor>& others :
       {std::vector<torch::Tensor>{parameter({1, 2, 3})}, {parameter({1, 2}), parameter({1})}}) {
    Optimizer optimizer({});
    optimizer.load(StateReader(state.bytes(), "run.checkpoint"), "o", torch::kCPU);
    std::vector<torch::Tensor> gradient;
    for (const torch::Tensor& other : others) gradient.push_back(torch::ones_like(other));
    try {
      optimizer.step(others, gradient);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("run.checkpoint: ")) << error.what();
    }
  }
}

TEST(Optimizer, forgets_all_when_it_restarts) {
  const torch::Tensor x = parameter({1});
  const torch::Tensor y = parameter({1});
  Optimizer optimizer({.learning_rate = 0.1});
  optimizer.step({x}, {torch::tensor({1.0F})});
  optimizer.restart();
  optimizer.step({y}, {torch::tensor({-2.0F})});
  EXPECT_NEAR(at(y, 0), 1.1, 1e-6);
}

}  // namespace
}  // namespace emplace::learn
