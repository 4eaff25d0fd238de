#include "learn/methods/method.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "learn/learners/learner.h"
#include "learn/nn/optimizer.h"
#include "learn/policies/policy.h"

namespace emplace::learn {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class SampleAndLearn final : public Method {
 public:
  SampleAndLearn(PolicyPtr policy, LearnerPtr learner, const SampleAndLearnSettings& settings)
      : policy_(std::move(policy)), learner_(std::move(learner)), settings_(settings) {}

  void prepare(Environment& environment, Rng& rng) override {
    policy_->prepare(environment.budget(), rng);
  }

  void imitate(const Placement& placement, Environment& environment, Rng&) override {
    const Samples goal = policy_->actions_for(placement);
    Optimizer optimizer({.learning_rate = settings_.imitation.learning_rate, .clip_norm = 1});
    for (std::int64_t step = 0; step < settings_.imitation.steps && !environment.spent(); ++step) {
      double likelihood = 0;
      const Gradient gradient = gradient_of(*policy_, goal, environment.budget().threads,
                                            [&](const Scores& scores, const Shard&) {
                                              const torch::Tensor mean = scores.log_probs.mean();
                                              likelihood = std::exp(mean.item<double>());
                                              return -mean;
                                            });
      if (likelihood >= settings_.imitation.likelihood) break;
      optimizer.step(policy_->parameters().tensors(), gradient.by_parameter);
    }
  }

  std::int64_t round_size() const override { return learner_->batch(); }

  bool round(Environment& environment, Rng& rng, TrainingPoint& point) override {
    policy_->begin_round(rounds_);
    const std::int64_t count = environment.affordable(learner_->batch());
    const Stopwatch sampling;
    const Samples samples = policy_->sample(count, rng);
    std::vector<Placement> placements;
    for (std::int64_t i = 0; i < count; ++i) placements.push_back(policy_->placement(samples, i));
    point.policy_seconds = sampling.seconds();
    PendingOutcomes outcomes(environment.evaluate(std::move(placements)));
    const bool whole = count == learner_->batch();
    if (whole) {
      ++rounds_;
      const Stopwatch learning;
      const UpdateReport report = update(samples, outcomes, environment.budget().threads);
      point.learner_seconds = learning.seconds() - outcomes.waited_seconds();
      point.waiting_seconds = outcomes.waited_seconds();
      point.mean_cost = report.mean_cost;
      point.baseline = report.baseline;
      point.entropy = report.entropy;
      point.kl = report.kl;
      point.gradient_norm = report.gradient_norm;
      policy_->describe(samples, point);
      if (report.entropy < settings_.restart_entropy && policy_->restart(rng)) learner_->restart();
    }
    describe(outcomes.get(), point);
    return whole;
  }

  void save(StateWriter& state) const override {
    state.put("rounds", rounds_);
    for (const auto& [name, tensor] : policy_->parameters().named()) {
      state.put("policy." + name, tensor);
    }
    learner_->save(state);
  }
  void load(const StateReader& state) override {
    rounds_ = state.count("rounds");
    for (const auto& [name, tensor] : policy_->parameters().named()) {
      state.load("policy." + name, tensor);
    }
    learner_->load(state, *policy_);
  }

 private:
  // What was sampled counts though there is no time left to learn from it.
  UpdateReport update(const Samples& samples, PendingOutcomes& outcomes, int threads) {
    try {
      return learner_->update(*policy_, samples, outcomes, threads);
    } catch (const std::exception&) {
      outcomes.get();
      throw;
    }
  }

  PolicyPtr policy_;
  LearnerPtr learner_;
  SampleAndLearnSettings settings_;
  std::int64_t rounds_ = 0;
};

}  // namespace

void describe(const std::vector<SampleOutcome>& outcomes, TrainingPoint& point) {
  std::int64_t fitting = 0;
  std::int64_t valid = 0;
  for (const SampleOutcome& outcome : outcomes) {
    if (!outcome.valid) continue;
    ++valid;
    point.mean_seconds += static_cast<double>(outcome.step) * 1e-9;
    if (!outcome.fits()) continue;
    ++fitting;
    if (point.round_best == 0 || outcome.step < point.round_best) point.round_best = outcome.step;
  }
  if (valid > 0) point.mean_seconds /= static_cast<double>(valid);
  if (!outcomes.empty()) {
    point.fitting_share = static_cast<double>(fitting) / static_cast<double>(outcomes.size());
  }
}

MethodPtr sample_and_learn(PolicyPtr policy, LearnerPtr learner,
                           const SampleAndLearnSettings& settings) {
  return std::make_shared<SampleAndLearn>(std::move(policy), std::move(learner), settings);
}

}  // namespace emplace::learn
