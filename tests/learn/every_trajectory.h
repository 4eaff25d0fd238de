// Every episode of a policy on two devices, enumerated: what the gradient from sampled episodes is
// compared with.
#pragma once

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "learn/methods/episode_rewards.h"
#include "learn/methods/move_policy.h"
#include "learn/train/environment.h"

namespace emplace::learn {

struct EpisodeWorld {
  const MovePolicy& policy;
  Environment& environment;
  const Runtimes& runtimes;
  std::vector<DeviceId> devices;    // by unit, at first
  std::vector<UnitId> turns = {};   // empty: every unit's, in order
  std::vector<float> leaning = {};  // by device, or empty
};

// Calls `visit` with every sequence of decisions from `state` on, its probability and its runtimes.
class EveryTrajectory {
 public:
  using Visit =
      std::function<void(double, const std::vector<Decision>&, const std::vector<double>&)>;
  EveryTrajectory(const EpisodeWorld& world, Visit visit)
      : world_(world), turns_(world.turns), visit_(std::move(visit)) {
    const std::size_t units = world.policy.units().size();
    for (UnitId unit = 0; world.turns.empty() && unit < units; ++unit) turns_.push_back(unit);
    go_on({world.devices, std::vector<std::uint8_t>(units, 0), {}, 0, world.leaning}, 1);
  }

 private:
  void go_on(PlacementState state, double probability) {
    const auto result =
        world_.environment.evaluate_with_starts({world_.policy.units().expand(state.devices)})
            .get();
    state.starts = world_.policy.features().starts(result[0].starts);
    runtimes_.push_back(world_.runtimes(result[0].outcome));
    if (decisions_.size() == turns_.size()) {
      visit_(probability, decisions_, runtimes_);
    } else {
      state.current = turns_[decisions_.size()];
      const PlacementState* one = &state;
      const torch::Tensor probs = world_.policy.log_probs({&one, 1}).detach().exp()[0];
      for (DeviceId device = 0; device < 2; ++device) {
        PlacementState next = state;
        next.devices[state.current] = device;
        next.visits[state.current] = 1;
        decisions_.push_back({state, device, 0});
        go_on(std::move(next), probability * probs[device].item<double>());
        decisions_.pop_back();
      }
    }
    runtimes_.pop_back();
  }

  const EpisodeWorld& world_;
  std::vector<UnitId> turns_;
  Visit visit_;
  std::vector<Decision> decisions_;
  std::vector<double> runtimes_;
};

inline double expected_improvement(const EpisodeWorld& world) {
  double sum = 0;
  EveryTrajectory(world, [&](double probability, const auto&, const std::vector<double>& runtimes) {
    sum += probability * (runtimes.front() - runtimes.back());
  });
  return sum;
}

// By the gradients of all episodes, weighted with their probabilities.
inline std::vector<torch::Tensor> expected_gradient(const EpisodeWorld& world,
                                                    EpisodeReward reward) {
  std::vector<Decision> decisions;
  std::vector<double> weights;
  EveryTrajectory(world, [&](double probability, const std::vector<Decision>& made,
                             const std::vector<double>& runtimes) {
    const std::vector<double> returns = returns_of(reward, runtimes);
    decisions.insert(decisions.end(), made.begin(), made.end());
    for (const double value : returns) weights.push_back(probability * value);
  });
  std::vector<WeightedDecision> weighted;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    weighted.push_back({&decisions[i].state, decisions[i].device, weights[i]});
  }
  return gradient_of(world.policy, weighted, 0, 1).by_parameter;
}

// Its length is the slope of the expected improvement along it, in a step of `length` both ways.
inline void expect_gradient_of_improvement(const EpisodeWorld& world, EpisodeReward reward,
                                           double length = 0.005) {
  const std::vector<torch::Tensor> gradient = expected_gradient(world, reward);
  const auto walk = [&](double distance) {
    const torch::NoGradGuard no_gradients;
    const std::vector<torch::Tensor> parameters = world.policy.parameters().tensors();
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      torch::Tensor(parameters[i]).add_(gradient[i], distance);
    }
  };
  double square = 0;
  for (const torch::Tensor& part : gradient) square += part.pow(2).sum().item<double>();
  ASSERT_GT(square, 0);
  const double step = length / std::sqrt(square);
  walk(step);
  const double up = expected_improvement(world);
  walk(-2 * step);
  const double down = expected_improvement(world);
  // The gradient is of a loss: against it things improve.
  EXPECT_LT(up, down);
  EXPECT_NEAR((up - down) / (2 * step) / -square, 1, 0.05);
}

}  // namespace emplace::learn
