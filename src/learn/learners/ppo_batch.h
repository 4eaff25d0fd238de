// One batch of samples and PPO's objective on it: clipped ratios (Schulman et al. 2017), or a
// penalty for how far the policy has moved.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "learn/learners/learner.h"
#include "learn/learners/ppo.h"

namespace emplace::learn {

class PpoBatch {
 public:
  // Keeps references to all of it. `advantages` gives [samples], and is asked as late as possible.
  PpoBatch(Policy& policy, const Samples& samples, const PpoSettings& settings,
           std::function<torch::Tensor()> advantages);

  // Of the negative objective, at the policy's parameters as they are. Ratios are to those of the
  // first call.
  Gradient gradient(double kl_weight, int threads);
  // KL(first || latest) at the latest call, per decision.
  double divergence() const;

 private:
  torch::Tensor loss(const Scores& scores, const Shard& shard, double kl_weight);

  static constexpr std::size_t kMostShards = 64;
  Policy& policy_;
  const Samples& samples_;
  const PpoSettings& settings_;
  std::function<torch::Tensor()> ask_;
  std::once_flag asked_;
  bool first_ = true;
  torch::Tensor advantages_;
  std::vector<torch::Tensor> log_probs_{kMostShards};  // by shard, at first
  std::vector<std::vector<torch::Tensor>> distributions_{kMostShards};
  std::vector<double> divergences_ = std::vector<double>(kMostShards);  // by shard: the sum
};

// (baseline - cost) of each, over their standard deviation where that is asked for.
torch::Tensor advantages_of(const std::vector<double>& costs, double baseline, bool normalize);

}  // namespace emplace::learn
