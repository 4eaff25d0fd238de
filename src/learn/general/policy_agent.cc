#include "learn/general/policy_agent.h"

#include <cmath>
#include <optional>
#include <utility>

#include "learn/general/leanings.h"
#include "learn/learners/ppo_batch.h"
#include "learn/methods/method.h"

namespace emplace::learn {
namespace {

class PolicyAgent final : public GeneralAgent {
 public:
  PolicyAgent(const Problem& problem, GeneralPolicyPtr policy, const PpoSettings& settings)
      : policy_(std::move(policy)), settings_(settings), costs_(problem, settings.cost) {}

  Parameters& parameters() override { return policy_->parameters(); }
  const DeviceViews& views() const override { return policy_->views(); }
  void use(std::span<const DeviceId> devices) override { policy_->use(views().of(devices)); }
  std::int64_t round_size() const override { return settings_.batch; }
  std::int64_t epochs() const override { return settings_.epochs; }
  double learning_rate() const override { return settings_.optimizer.learning_rate; }

  bool explore(Environment& environment, Rng& rng, TrainingPoint& point) override {
    threads_ = environment.budget().threads;
    const std::int64_t count = environment.affordable(settings_.batch);
    samples_ = policy_->sample(count, rng);
    const std::vector<SampleOutcome> outcomes = evaluate(samples_, environment);
    describe(outcomes, point);
    if (count < settings_.batch) return false;
    std::vector<double> costs;
    for (const SampleOutcome& outcome : outcomes) costs.push_back(costs_(outcome));
    for (const double cost : costs) point.mean_cost += cost / static_cast<double>(count);
    const torch::Tensor advantages =
        advantages_of(costs, point.mean_cost, settings_.normalize_advantage);
    batch_.emplace(*policy_, samples_, settings_, [advantages] { return advantages; });
    return true;
  }

  std::vector<torch::Tensor> gradient() override {
    // In parts of a decision, so that large graphs do not drown small ones.
    std::vector<torch::Tensor> result = batch_->gradient(0, threads_).by_parameter;
    for (torch::Tensor& tensor : result) tensor /= static_cast<double>(samples_.actions.size(1));
    return result;
  }

  Imitation imitate(const Placement& placement, Environment&, Rng&) override {
    Imitation result;
    result.gradient = gradient_of(*policy_, policy_->actions_for(placement), 1,
                                  [&](const Scores& scores, const Shard&) {
                                    const torch::Tensor mean = scores.log_probs.mean();
                                    result.likelihood = std::exp(mean.item<double>());
                                    return -mean;
                                  })
                          .by_parameter;
    return result;
  }

  std::vector<torch::Tensor> encoder_gradient(Rng& rng) override {
    return policy_->encoder_gradient(rng);
  }

  std::vector<Placement> propose(std::int64_t count, Environment& environment, Rng& rng) override {
    const std::int64_t affordable = environment.affordable(count);
    if (affordable == 0) return {};
    const std::int64_t leaning = affordable / 2;
    std::vector<Placement> all = placements_of(
        policy_->likeliest(leanings(1 + leaning, views().units().num_devices(), rng)));
    if (affordable > 1 + leaning) {
      for (Placement& drawn : placements_of(policy_->sample(affordable - 1 - leaning, rng))) {
        all.push_back(std::move(drawn));
      }
    }
    const std::vector<SampleOutcome> outcomes = environment.evaluate(all).get();
    return first_and_best(std::move(all), outcomes);
  }

 private:
  std::vector<Placement> placements_of(const Samples& samples) const {
    std::vector<Placement> placements;
    for (std::int64_t i = 0; i < samples.size(); ++i) {
      placements.push_back(policy_->placement(samples, i));
    }
    return placements;
  }
  std::vector<SampleOutcome> evaluate(const Samples& samples, Environment& environment) const {
    return environment.evaluate(placements_of(samples)).get();
  }

  GeneralPolicyPtr policy_;
  PpoSettings settings_;
  Costs costs_;
  int threads_ = 1;
  Samples samples_;
  std::optional<PpoBatch> batch_;
};

}  // namespace

GeneralAgentPtr policy_agent(const Problem& problem, GeneralPolicyPtr policy,
                             const PpoSettings& settings) {
  return std::make_shared<PolicyAgent>(problem, std::move(policy), settings);
}

}  // namespace emplace::learn
