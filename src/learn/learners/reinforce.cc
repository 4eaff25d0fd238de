#include "learn/learners/reinforce.h"

#include <mutex>

#include "learn/learners/baseline.h"
#include "learn/learners/learner.h"
#include "learn/nn/optimizer.h"

namespace emplace::learn {
namespace {

class Reinforce final : public GradientLearner {
 public:
  Reinforce(const Problem& problem, const ReinforceSettings& settings)
      : settings_(settings),
        costs_(problem, settings.cost),
        optimizer_(settings.optimizer),
        baseline_(settings.baseline_decay,
                  settings.baseline_begins_at_signal && settings.cost.shortage == Shortage::kSignal
                      ? std::optional<double>(costs_.failing())
                      : std::nullopt) {}

  std::int64_t batch() const override { return settings_.batch; }

  UpdateReport update(Policy& policy, const Samples& samples, PendingOutcomes& outcomes,
                      int threads) override {
    Found found = find_gradient(policy, samples, outcomes, threads);
    if (!found.gradient.empty()) {
      found.report.gradient_norm = optimizer_.step(policy.parameters(), found.gradient);
    }
    return found.report;
  }

  Found find_gradient(Policy& policy, const Samples& samples, PendingOutcomes& outcomes,
                      int threads) override {
    Found found;
    UpdateReport& report = found.report;
    std::once_flag weighed;
    torch::Tensor weights;  // by sample: how much worse than the baseline, over the batch
    std::int64_t counted = 0;
    const double share = 1.0 / static_cast<double>(samples.size());
    Gradient gradient =
        gradient_of(policy, samples, threads, [&](const Scores& scores, const Shard& shard) {
          std::call_once(weighed, [&] { weights = weigh(outcomes.get(), report, counted); });
          const torch::Tensor own = weights.slice(0, shard.first, shard.first + shard.count)
                                        .to(scores.log_probs.device());
          const double bonus = settings_.entropy_weight * share * static_cast<double>(shard.count) *
                               static_cast<double>(scores.log_probs.size(1));
          return (own * scores.log_probs.sum(1)).sum() - bonus * scores.entropy;
        });
    report.entropy = gradient.entropy;
    if (counted > 0) {
      found.gradient = std::move(gradient.by_parameter);
      baseline_.update(report.mean_cost);
    }
    ++updates_;
    return found;
  }

  std::vector<double> memory() const override { return baseline_.memory(); }
  void recall(const std::vector<double>& memory, std::int64_t updates) override {
    if (memory.empty()) {
      baseline_.restart();
    } else {
      baseline_.recall(memory);
    }
    updates_ = updates;
  }
  const OptimizerSettings& steps() const override { return settings_.optimizer; }

  void restart() override {
    optimizer_.restart();
    baseline_.restart();
    updates_ = 0;
  }
  void save(StateWriter& state) const override {
    optimizer_.save(state, "optimizer");
    baseline_.save(state);
    state.put("updates", updates_);
  }
  void load(const StateReader& state, Policy& policy) override {
    optimizer_.load(state, "optimizer", policy.parameters().device());
    baseline_.load(state);
    updates_ = state.count("updates");
  }

 private:
  torch::Tensor weigh(const std::vector<SampleOutcome>& outcomes, UpdateReport& report,
                      std::int64_t& counted) const {
    const bool mask =
        settings_.cost.shortage == Shortage::kSignal && updates_ >= settings_.mask_failures_after;
    std::vector<double> costs;
    for (const SampleOutcome& outcome : outcomes) {
      costs.push_back(costs_(outcome));
      if (mask && !outcome.fits()) continue;
      report.mean_cost += costs.back();
      ++counted;
    }
    if (counted > 0) report.mean_cost /= static_cast<double>(counted);
    report.baseline = baseline_.value(report.mean_cost);
    torch::Tensor weights = torch::zeros({static_cast<std::int64_t>(outcomes.size())});
    auto values = weights.accessor<float, 1>();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (mask && !outcomes[i].fits()) continue;
      values[static_cast<std::int64_t>(i)] =
          static_cast<float>((costs[i] - report.baseline) / static_cast<double>(counted));
    }
    return weights;
  }

  ReinforceSettings settings_;
  Costs costs_;
  Optimizer optimizer_;
  MovingBaseline baseline_;
  std::int64_t updates_ = 0;
};

}  // namespace

LearnerPtr reinforce(const Problem& problem, const ReinforceSettings& settings) {
  return std::make_shared<Reinforce>(problem, settings);
}

}  // namespace emplace::learn
