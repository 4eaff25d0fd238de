#include "learn/learners/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

#include "learn/learners/learner.h"
#include "learn/nn/optimizer.h"

namespace emplace::learn {
namespace {

// For policies without a closed form: steps of maximum likelihood.
constexpr std::int64_t kFitSteps = 20;
constexpr double kFitRate = 0.01;

// Whether these may be the decisions of so many samples: as many each as the policy makes, and each
// of them one of its classes.
bool may_decide(Policy& policy, const torch::Tensor& actions, std::int64_t samples) {
  const torch::NoGradGuard no_gradients;
  Rng rng(0);  // which sample does not matter
  const Samples one = policy.sample(1, rng);
  if (actions.dim() != 2 || actions.size(0) != samples || actions.size(1) != one.actions.size(1) ||
      actions.min().item<std::int64_t>() < 0) {
    return false;
  }
  std::int64_t first = 0;
  for (const torch::Tensor& part : policy.score(one).distributions) {
    const torch::Tensor own = actions.slice(1, first, first + part.size(1));
    if (own.max().item<std::int64_t>() >= part.size(2)) return false;
    first += part.size(1);
  }
  return true;
}

class CrossEntropy final : public Learner {
 public:
  CrossEntropy(const Problem& problem, const CrossEntropySettings& settings, LearnerPtr between)
      : settings_(settings),
        costs_(problem, settings.cost),
        between_(std::move(between)),
        optimizer_({.learning_rate = kFitRate}) {}

  // The last before a refit is as short as it must be. PPO does not learn from that one.
  std::int64_t batch() const override {
    return std::min(settings_.batch, settings_.refit_after - seen_);
  }

  UpdateReport update(Policy& policy, const Samples& samples, PendingOutcomes& outcomes,
                      int threads) override {
    seen_ += samples.size();
    const bool refits = seen_ >= settings_.refit_after;
    UpdateReport report;
    if (between_ != nullptr && !refits) {
      report = between_->update(policy, samples, outcomes, threads);
    } else {
      const torch::NoGradGuard no_gradients;
      report.entropy = policy.score(samples.slice(0, 1)).entropy.item<double>();
    }
    remember(samples, outcomes.get(), report);
    if (refits) {
      if (between_ != nullptr && settings_.tells_baseline) between_->hear(outcomes.get());
      refit(policy, threads);
      seen_ = 0;
      actions_.clear();
      values_.clear();
    }
    return report;
  }

  void restart() override {
    if (between_ != nullptr) between_->restart();
    optimizer_.restart();
    seen_ = 0;
    actions_.clear();
    values_.clear();
  }

  void save(StateWriter& state) const override {
    if (between_ != nullptr) between_->save(state);
    optimizer_.save(state, "refit");
    state.put("seen", seen_);
    state.put("seen_costs", values_);
    state.put("seen_actions", actions_.empty() ? torch::empty({0}, torch::kInt64)
                                               : torch::cat(actions_).to(torch::kInt64));
  }
  void load(const StateReader& state, Policy& policy) override {
    const torch::Device device = policy.parameters().device();
    if (between_ != nullptr) between_->load(state, policy);
    optimizer_.load(state, "refit", device);
    seen_ = state.integer("seen", 0, settings_.refit_after - 1);
    values_ = state.reals("seen_costs");
    actions_.clear();
    if (values_.empty()) return;
    const torch::Tensor actions = state.whole_tensor("seen_actions");
    if (!may_decide(policy, actions, static_cast<std::int64_t>(values_.size()))) {
      state.refuse("seen_actions",
                   fmt::format("decisions of this policy for {} samples", values_.size()));
    }
    actions_.push_back(actions.to(device));
  }

 private:
  void remember(const Samples& samples, const std::vector<SampleOutcome>& outcomes,
                UpdateReport& report) {
    EMPLACE_CHECK(samples.context.empty());  // elites are scored again without
    actions_.push_back(samples.actions);
    double sum = 0;
    for (const SampleOutcome& outcome : outcomes) {
      values_.push_back(costs_(outcome));
      sum += values_.back();
    }
    report.mean_cost = sum / static_cast<double>(outcomes.size());
  }

  // The best share of all since the last refit, ties included.
  Samples elite() const {
    std::vector<double> sorted = values_;
    const auto wanted = static_cast<std::size_t>(
        std::max(1.0, std::ceil(settings_.elite_share * static_cast<double>(sorted.size()))));
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(wanted - 1),
                     sorted.end());
    const double threshold = sorted[wanted - 1];
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] <= threshold) rows.push_back(static_cast<std::int64_t>(i));
    }
    const torch::Tensor all = torch::cat(actions_);
    Samples result;
    result.actions = all.index_select(0, to_tensor(rows, all.device()));
    return result;
  }

  void refit(Policy& policy, int threads) {
    const Samples best = elite();
    if (policy.fit(best, settings_.uniform_share)) return;
    for (std::int64_t step = 0; step < kFitSteps; ++step) {
      const Gradient gradient =
          gradient_of(policy, best, threads, [&](const Scores& scores, const Shard&) {
            return -scores.log_probs.sum() / static_cast<double>(best.size());
          });
      optimizer_.step(policy.parameters().tensors(), gradient.by_parameter);
    }
  }

  CrossEntropySettings settings_;
  Costs costs_;
  LearnerPtr between_;
  Optimizer optimizer_;
  std::int64_t seen_ = 0;
  std::vector<torch::Tensor> actions_;  // since the last refit
  std::vector<double> values_;
};

}  // namespace

LearnerPtr cross_entropy(const Problem& problem, const CrossEntropySettings& settings) {
  return std::make_shared<CrossEntropy>(problem, settings, nullptr);
}

LearnerPtr ppo_and_cross_entropy(const Problem& problem, const CrossEntropySettings& refit,
                                 const PpoSettings& settings) {
  return std::make_shared<CrossEntropy>(problem, refit, ppo(problem, settings));
}

}  // namespace emplace::learn
