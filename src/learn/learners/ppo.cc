#include "learn/learners/ppo.h"

#include <algorithm>
#include <cmath>

#include "learn/learners/baseline.h"
#include "learn/learners/learner.h"
#include "learn/learners/ppo_batch.h"
#include "learn/nn/optimizer.h"

namespace emplace::learn {
namespace {

// The KL weight stays within these factors of what it was at first: near certainty the divergence
// all but vanishes, and a weight that kept falling would let the next step go anywhere.
constexpr double kWeightRange = 64;
// How the learning rate follows the divergence.
constexpr double kFarTooFar = 4;
constexpr double kRateStep = 1.5;
constexpr double kRateRange = 32;

class Ppo final : public Learner {
 public:
  Ppo(const Problem& problem, const PpoSettings& settings)
      : settings_(settings),
        costs_(problem, settings.cost),
        optimizer_(settings.optimizer),
        baseline_(settings.baseline_decay),
        kl_weight_(settings.kl_weight) {}

  std::int64_t batch() const override { return settings_.batch; }

  UpdateReport update(Policy& policy, const Samples& samples, PendingOutcomes& outcomes,
                      int threads) override {
    UpdateReport report;
    PpoBatch batch(policy, samples, settings_, [&] { return weigh(outcomes.get(), report); });
    std::vector<torch::Tensor> before;  // the last step
    for (std::int64_t epoch = 0; epoch < settings_.epochs; ++epoch) {
      const Gradient gradient = batch.gradient(kl_weight_, threads);
      if (epoch == 0) report.entropy = gradient.entropy;
      // What the steps so far have done; the last one's is not worth another pass.
      report.kl = batch.divergence();
      if (settings_.kl_share > 0) {
        if (report.kl > kFarTooFar * settings_.kl_share * report.entropy) {
          policy.parameters().assign(before);
          break;
        }
        before = policy.parameters().values();
      }
      report.gradient_norm = optimizer_.step(policy.parameters(), gradient.by_parameter, rate_);
    }
    // With one step there was no divergence to see yet.
    if (settings_.epochs > 1) {
      if (settings_.kl_share > 0) follow(report.kl, settings_.kl_share * report.entropy);
      adapt(report.kl);
    }
    baseline_.update(report.mean_cost);
    return report;
  }

  void hear(const std::vector<SampleOutcome>& outcomes) override {
    UpdateReport report;
    weigh(outcomes, report);
    baseline_.update(report.mean_cost,
                     static_cast<double>(outcomes.size()) / static_cast<double>(settings_.batch));
  }

  void restart() override {
    optimizer_.restart();
    baseline_.restart();
    kl_weight_ = settings_.kl_weight;
    rate_ = 1;
  }
  void save(StateWriter& state) const override {
    optimizer_.save(state, "optimizer");
    baseline_.save(state);
    state.put("kl_weight", kl_weight_);
    state.put("rate", rate_);
  }
  void load(const StateReader& state, Policy& policy) override {
    optimizer_.load(state, "optimizer", policy.parameters().device());
    baseline_.load(state);
    kl_weight_ = state.real("kl_weight", 0, settings_.kl_weight * kWeightRange);
    rate_ = state.real("rate", 0, kRateRange);
  }

 private:
  torch::Tensor weigh(const std::vector<SampleOutcome>& outcomes, UpdateReport& report) const {
    std::vector<double> costs;
    for (const SampleOutcome& outcome : outcomes) costs.push_back(costs_(outcome));
    const auto count = static_cast<double>(costs.size());
    for (const double cost : costs) report.mean_cost += cost / count;
    report.baseline = baseline_.value(report.mean_cost);
    return advantages_of(costs, report.baseline, settings_.normalize_advantage);
  }

  void follow(double kl, double wanted) {
    if (kl > 2 * wanted) rate_ /= kRateStep;
    if (kl < wanted / 2) rate_ *= kRateStep;
    rate_ = std::clamp(rate_, 1 / kRateRange, kRateRange);
  }

  void adapt(double kl) {
    if (kl > 1.5 * settings_.kl_target) kl_weight_ *= 2;
    if (kl < settings_.kl_target / 1.5) kl_weight_ /= 2;
    kl_weight_ = std::clamp(kl_weight_, settings_.kl_weight / kWeightRange,
                            settings_.kl_weight * kWeightRange);
  }

  PpoSettings settings_;
  Costs costs_;
  Optimizer optimizer_;
  MovingBaseline baseline_;
  double kl_weight_;
  double rate_ = 1;  // times the optimizer's learning rate
};

}  // namespace

LearnerPtr ppo(const Problem& problem, const PpoSettings& settings) {
  return std::make_shared<Ppo>(problem, settings);
}

}  // namespace emplace::learn
