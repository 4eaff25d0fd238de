#include "learn/general/policy_agent.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/simulator.h"

#include "learn/general/blocks.h"
#include "learn/general/leanings.h"
#include "learn/learners/ppo_batch.h"
#include "learn/methods/method.h"

namespace emplace::learn {
namespace {

// Samples of a round of refining that begin at the same placement.
constexpr std::int64_t kSitting = 4;
// Of these samples, that decide about what the step waits for.
constexpr double kHotShare = 0.8;

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
  // Most parts are where the step loses time. Better placements are gone on from at once, a few
  // times in a round.
  bool refine(Solution& from, Environment& environment, Rng& rng, TrainingPoint& point) override {
    if (!blocks_) blocks_.emplace(views().units());
    threads_ = environment.budget().threads;
    Solution best = from;
    std::vector<Samples> parts;
    std::vector<SampleOutcome> outcomes;
    std::vector<torch::Tensor> advantages;
    bool looked = false;
    std::int64_t left = settings_.batch;
    while (left > 0) {
      if (!std::exchange(looked, true)) look_at(best, environment);
      const std::int64_t count = environment.affordable(std::min(kSitting, left));
      if (count == 0) break;
      parts.push_back(redraw(best.placement, count, rng));
      const std::vector<SampleOutcome> own = evaluate(parts.back(), environment);
      outcomes.insert(outcomes.end(), own.begin(), own.end());
      advantages.push_back(advantages_among(own, point));
      if (hear(parts.back(), own, best)) looked = false;
      left -= count;
    }
    describe(outcomes, point);
    if (left > 0) return false;
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
  // What the step of a placement waits for, for what is drawn next.
  void look_at(const Solution& solution, Environment& environment) {
    spots_.clear();
    ends_.clear();
    if (environment.affordable(1) == 0) return;
    Evaluator& evaluator = environment.context().evaluator();
    evaluator.objective().match(
        [&](const StepTime&) {
          spots_ = evaluator.hot_spots(solution.placement,
                                       ReadyOrder(evaluator.problem(), solution.schedule));
        },
        [](const StreamPeriod&) {});
    double all = 0;
    for (const HotSpot& spot : spots_) ends_.push_back(all += static_cast<double>(spot.length));
  }

  Samples redraw(const Placement& from, std::int64_t count, Rng& rng) {
    const UnitGraph& units = views().units();
    const std::vector<DeviceId> devices = units.contract(from);
    const torch::Tensor open = torch::zeros({count, units.size()}, torch::kBool);
    const torch::Tensor leaning = torch::zeros({count, units.num_devices()}, torch::kFloat32);
    for (std::int64_t i = 0; i < count; ++i) {
      const Question question = draw_question(devices, rng);
      bool* own = open[i].data_ptr<bool>();
      for (const UnitId unit : question.block) own[unit] = true;
      std::copy(question.leaning.begin(), question.leaning.end(), leaning[i].data_ptr<float>());
    }
    return policy_->redraw(from, open, leaning, rng);
  }

  // A part of a placement [unit] to decide about anew, and by device how much to lean to it.
  struct Question {
    std::vector<UnitId> block;
    std::vector<float> leaning;
  };
  Question draw_question(const std::vector<DeviceId>& devices, Rng& rng) const {
    const UnitGraph& units = views().units();
    if (spots_.empty() || !rng.chance(kHotShare)) {
      std::vector<UnitId> block = blocks_->draw(rng);
      std::vector<float> leaning =
          leaning_elsewhere(block, devices, used_, units.num_devices(), rng);
      return {std::move(block), std::move(leaning)};
    }
    // The longer, the likelier.
    const auto at = std::upper_bound(ends_.begin(), ends_.end(), rng.uniform() * ends_.back());
    const HotSpot& spot =
        spots_[std::min(static_cast<std::size_t>(at - ends_.begin()), spots_.size() - 1)];
    UnitId unit = units.unit_of_op(spot.op);
    UnitId other = units.unit_of_op(spot.other);
    if (rng.chance(0.5)) std::swap(unit, other);
    std::vector<UnitId> block = blocks_->draw_around(unit, rng);
    std::vector<float> leaning =
        spot.kind == HotSpot::Kind::kTransfer
            ? leaning_to(devices[other], units.num_devices(), rng)
            : leaning_elsewhere(block, devices, used_, units.num_devices(), rng);
    return {std::move(block), std::move(leaning)};
  }

  // Whether one of them is better than the best, which it then is: in no order of its own, as it
  // was valued.
  bool hear(const Samples& samples, const std::vector<SampleOutcome>& outcomes,
            Solution& best) const {
    bool better = false;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const Evaluation value{outcomes[i].step, outcomes[i].overflow};
      if (!outcomes[i].valid || !(value < best.value)) continue;
      best = {.placement = policy_->placement(samples, static_cast<std::int64_t>(i)),
              .value = value};
      better = true;
    }
    return better;
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
  std::vector<HotSpot> spots_;
  std::vector<double> ends_;  // of these, laid end to end
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
