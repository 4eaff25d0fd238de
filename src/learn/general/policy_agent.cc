#include "learn/general/policy_agent.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "learn/general/blocks.h"
#include "learn/general/leanings.h"
#include "learn/learners/ppo_batch.h"
#include "learn/methods/method.h"

namespace emplace::learn {
namespace {

// Samples of a round of refining that begin at the same placement.
constexpr std::int64_t kSitting = 4;

class PolicyAgent final : public GeneralAgent {
 public:
  PolicyAgent(const Problem& problem, GeneralPolicyPtr policy, const PpoSettings& settings)
      : policy_(std::move(policy)), settings_(settings), costs_(problem, settings.cost) {
    use(views().fastest(problem.num_devices()));
  }

  Parameters& parameters() override { return policy_->parameters(); }
  const DeviceViews& views() const override { return policy_->views(); }
  void use(std::span<const DeviceId> devices) override {
    const DeviceView view = views().of(devices);
    used_ = view.used;
    policy_->use(view);
  }
  std::int64_t round_size() const override { return settings_.batch; }
  std::int64_t epochs() const override { return settings_.epochs; }
  double learning_rate() const override { return settings_.optimizer.learning_rate; }

  bool explore(Environment& environment, Rng& rng, TrainingPoint& point) override {
    threads_ = environment.budget().threads;
    samples_ = policy_->sample(environment.affordable(settings_.batch), rng);
    const std::vector<SampleOutcome> outcomes = evaluate(samples_, environment);
    describe(outcomes, point);
    if (samples_.size() < settings_.batch) return false;
    keep(advantages_among(outcomes, point));
    return true;
  }

  // Each sample has a part of the placement of its own to decide about, and leans to a device.
  // Better placements are gone on from at once, a few times in a round.
  bool refine(Solution& from, Environment& environment, Rng& rng, TrainingPoint& point) override {
    if (!blocks_) blocks_.emplace(views().units());
    threads_ = environment.budget().threads;
    const std::int64_t count = environment.affordable(settings_.batch);
    Solution best = from;
    std::vector<Samples> parts;
    std::vector<SampleOutcome> outcomes;
    std::vector<torch::Tensor> advantages;
    for (std::int64_t first = 0; first < count; first += kSitting) {
      parts.push_back(redraw(best.placement, std::min(kSitting, count - first), rng));
      const std::vector<SampleOutcome> own = evaluate(parts.back(), environment);
      outcomes.insert(outcomes.end(), own.begin(), own.end());
      if (count == settings_.batch) advantages.push_back(advantages_among(own, point));
      hear(parts.back(), own, best);
    }
    describe(outcomes, point);
    if (count < settings_.batch) return false;
    from = std::move(best);
    samples_ = joined(parts);
    keep(torch::cat(advantages));
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
  Samples redraw(const Placement& from, std::int64_t count, Rng& rng) {
    const UnitGraph& units = views().units();
    const std::vector<DeviceId> devices = units.contract(from);
    const torch::Tensor open = torch::zeros({count, units.size()}, torch::kBool);
    const torch::Tensor leaning = torch::zeros({count, units.num_devices()}, torch::kFloat32);
    for (std::int64_t i = 0; i < count; ++i) {
      bool* own = open[i].data_ptr<bool>();
      const std::vector<UnitId> block = blocks_->draw(rng);
      for (const UnitId unit : block) own[unit] = true;
      const std::vector<float> to =
          leaning_elsewhere(block, devices, used_, units.num_devices(), rng);
      std::copy(to.begin(), to.end(), leaning[i].data_ptr<float>());
    }
    return policy_->redraw(from, open, leaning, rng);
  }
  void hear(const Samples& samples, const std::vector<SampleOutcome>& outcomes,
            Solution& best) const {
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const Evaluation value{outcomes[i].step, outcomes[i].overflow};
      if (!outcomes[i].valid || !(value < best.value)) continue;
      best.placement = policy_->placement(samples, static_cast<std::int64_t>(i));
      best.value = value;
    }
  }
  static Samples joined(const std::vector<Samples>& parts) {
    const auto join = [&](const auto& member) {
      std::vector<torch::Tensor> all;
      for (const Samples& part : parts) all.push_back(member(part));
      return torch::cat(all);
    };
    Samples result{.actions = join([](const Samples& part) { return part.actions; }),
                   .log_probs = join([](const Samples& part) { return part.log_probs; })};
    for (std::size_t i = 0; i < parts.front().context.size(); ++i) {
      result.context.push_back(join([i](const Samples& part) { return part.context[i]; }));
    }
    return result;
  }

  // Compared with their mean, which the point hears of as part of a batch.
  torch::Tensor advantages_among(const std::vector<SampleOutcome>& outcomes, TrainingPoint& point) {
    std::vector<double> costs;
    double mean = 0;
    for (const SampleOutcome& outcome : outcomes) {
      costs.push_back(costs_(outcome));
      mean += costs.back() / static_cast<double>(outcomes.size());
    }
    point.mean_cost +=
        mean * static_cast<double>(outcomes.size()) / static_cast<double>(settings_.batch);
    return advantages_of(costs, mean, settings_.normalize_advantage);
  }
  void keep(const torch::Tensor& advantages) {
    batch_.emplace(*policy_, samples_, settings_, [advantages] { return advantages; });
  }
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
  std::vector<DeviceId> used_;
  std::optional<Blocks> blocks_;  // once it has refined
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
