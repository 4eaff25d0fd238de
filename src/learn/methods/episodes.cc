// Rounds of Placeto: one round is one episode of several workers, then one gradient step.
//
// An episode visits the units in turn, `passes` times, and each visit may move the unit; every
// state on the way is evaluated, so a round costs workers * (passes * units + 1) evaluations at
// most and as many rows of the policy. The gradient is REINFORCE's: the sum over visits of -(return
// - baseline)
// * grad log p, with undiscounted returns (learn/methods/episode_rewards.h) and, for every visit,
// the mean return of the latest episodes as baseline. Subtracting it leaves the gradient's
// expectation as it is as far as it does not depend on the decision; the episode's own returns are
// part of the mean, as published, so the estimate is a little too small.
//
// Invariants:
// * Whatever outlasts an episode (the best state, the placement to begin from) is kept by units
// that
//   do not change: where groups are learned, each episode has units of its own.
// * An episode that the budget cuts short changes nothing, not even the random numbers: a resumed
// run
//   plays it whole, and ends as one that was never stopped.
//
// Addanki et al., "Placeto: Learning Generalizable Device Placement Algorithms for Distributed
// Machine Learning", NeurIPS 2019.
#include "learn/methods/episodes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "learn/methods/episode_imitation.h"
#include "learn/methods/episode_policy.h"
#include "learn/methods/episode_run.h"
#include "learn/methods/learned_grouping.h"
#include "learn/methods/saved_devices.h"
#include "learn/nn/optimizer.h"
#include "learn/train/state.h"

namespace emplace::learn {
namespace {

// States that one step of imitation looks at.
constexpr std::int64_t kStatesOfImitation = 2;

class Episodes final : public Method {
 public:
  Episodes(UnitGraph units, const EpisodeSettings& settings, torch::Device device, Rng& rng)
      : settings_(settings),
        grouping_(grouping_of(units, settings, device, rng)),
        policy_(grouping_ ? grouping_->likeliest() : std::move(units), settings.network,
                settings.memory_feature, device, rng),
        runtimes_(policy_.units().problem(), settings.runtime),
        baseline_(grouping_ ? 1 : settings.baseline_episodes),
        optimizer_({.learning_rate = settings.learning_rate,
                    .final_share = settings.last_learning_rate / settings.learning_rate,
                    .decay_steps = settings.learning_episodes,
                    .clip_norm = settings.clip_norm}) {}

  std::int64_t round_size() const override {
    return (settings_.workers + (greedy_turn() ? 1 : 0)) * (steps() + 1);
  }
  void imitate(const Placement& placement, Environment& environment, Rng& rng) override;
  bool round(Environment& environment, Rng& rng, TrainingPoint& point) override;
  void save(StateWriter& state) const override;
  void load(const StateReader& state) override;

 private:
  std::int64_t steps() const { return settings_.passes * policy_.units().size(); }
  bool greedy_turn() const {
    return settings_.greedy_every > 0 && (episodes_ + 1) % settings_.greedy_every == 0;
  }
  double entropy_weight() const;
  static std::optional<LearnedGrouping> grouping_of(const UnitGraph& units,
                                                    const EpisodeSettings& settings,
                                                    torch::Device device, Rng& rng);
  // Where groups are learned: on others from now on.
  void regroup(Rng& rng) {
    if (grouping_) policy_ = policy_.on(grouping_->draw(rng));
  }
  // Units that are the same in all episodes: what is kept is by these.
  const UnitGraph& lasting() const { return grouping_ ? grouping_->members() : policy_.units(); }
  std::vector<DeviceId> now(const std::vector<DeviceId>& kept) const {
    return policy_.units().contract(lasting().expand(kept));
  }
  std::vector<DeviceId> zero_devices() const;
  std::vector<DeviceId> first_devices(Environment& environment, Rng& rng) const;
  std::vector<UnitId> turns(Rng& rng) const;
  void learn(const std::vector<Trajectory>& trajectories, int threads, TrainingPoint& point);

  EpisodeSettings settings_;
  std::optional<LearnedGrouping> grouping_;
  EpisodePolicy policy_;
  Runtimes runtimes_;
  StepBaseline baseline_;
  Optimizer optimizer_;
  std::int64_t episodes_ = 0;
  std::vector<DeviceId> given_;  // by lasting unit, or empty: none was imitated
  std::vector<DeviceId> best_;   // by lasting unit, or empty: none yet
  double best_runtime_ = std::numeric_limits<double>::infinity();
};

std::optional<LearnedGrouping> Episodes::grouping_of(const UnitGraph& units,
                                                     const EpisodeSettings& settings,
                                                     torch::Device device, Rng& rng) {
  if (settings.learned_groups == 0) return {};
  return std::optional<LearnedGrouping>(
      std::in_place, units, settings.learned_groups,
      OptimizerSettings{.learning_rate = settings.grouper_learning_rate,
                        .clip_norm = settings.clip_norm},
      device, rng);
}

double Episodes::entropy_weight() const {
  const double done = std::min(
      1.0, static_cast<double>(episodes_) / static_cast<double>(settings_.entropy_episodes));
  return settings_.entropy_weight +
         done * (std::min(settings_.entropy_weight, settings_.last_entropy_weight) -
                 settings_.entropy_weight);
}

std::vector<DeviceId> Episodes::zero_devices() const {
  const UnitGraph& units = policy_.units();
  std::vector<DeviceId> devices(units.size());
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    devices[unit] = units.allowed_devices(unit).front();
  }
  return devices;
}

std::vector<DeviceId> Episodes::first_devices(Environment& environment, Rng& rng) const {
  switch (settings_.start) {
    case EpisodeStart::kRandom:
      break;
    case EpisodeStart::kZero:
      return zero_devices();
    case EpisodeStart::kBest:
      if (!best_.empty()) return now(best_);
      break;
    case EpisodeStart::kGiven:
      if (!given_.empty()) return now(given_);
      const std::vector<Solution>& starts = environment.context().starts();
      if (!starts.empty()) return policy_.units().contract(starts.front().placement);
      break;
  }
  return random_devices(policy_, rng);
}

std::vector<UnitId> Episodes::turns(Rng& rng) const {
  const std::span<const UnitId> order = policy_.order();
  std::vector<UnitId> once(order.begin(), order.end());
  if (settings_.random_order) rng.shuffle(once);
  std::vector<UnitId> all;
  for (std::int64_t pass = 0; pass < settings_.passes; ++pass) {
    all.insert(all.end(), once.begin(), once.end());
  }
  return all;
}

bool Episodes::round(Environment& environment, Rng& rng, TrainingPoint& point) {
  Rng episode_rng = rng;
  regroup(episode_rng);
  std::vector<Trajectory> trajectories;
  const std::int64_t count = settings_.workers + (greedy_turn() ? 1 : 0);
  for (std::int64_t worker = 0; worker < count; ++worker) {
    trajectories.push_back({.devices = first_devices(environment, episode_rng),
                            .turns = turns(episode_rng),
                            .greedy = worker == settings_.workers});
  }
  const EpisodeReport report = play_episode(policy_, runtimes_, environment, episode_rng,
                                            trajectories, settings_.count_stays);
  point.round_best = report.best_step;
  point.mean_seconds = report.mean_seconds;
  point.fitting_share = report.fitting_share;
  point.policy_seconds = report.policy_seconds;
  point.waiting_seconds = report.waiting_seconds;
  // An episode that was cut short leaves everything as it was before it.
  if (!report.complete) return false;
  rng = episode_rng;
  if (report.best_runtime < best_runtime_) {
    best_runtime_ = report.best_runtime;
    best_ = lasting().contract(policy_.units().expand(report.best));
  }
  trajectories.resize(static_cast<std::size_t>(settings_.workers));
  learn(trajectories, environment.budget().threads, point);
  if (grouping_) grouping_->learn(point.mean_cost, point);
  ++episodes_;
  return true;
}

void Episodes::learn(const std::vector<Trajectory>& trajectories, int threads,
                     TrainingPoint& point) {
  const auto start = std::chrono::steady_clock::now();
  for (const Trajectory& trajectory : trajectories) {
    point.mean_cost += trajectory.runtimes.back() / static_cast<double>(trajectories.size());
  }
  const std::vector<WeightedDecision> decisions =
      weighted_decisions(trajectories, settings_.reward, baseline_);
  DecisionGradient gradient = gradient_of(policy_, decisions, entropy_weight(), threads);
  point.gradient_norm =
      optimizer_.step(policy_.parameters().tensors(), std::move(gradient.by_parameter));
  point.entropy = gradient.entropy;
  point.baseline = baseline_.values().front();
  point.learner_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Episodes::imitate(const Placement& placement, Environment& environment, Rng& rng) {
  given_ = lasting().contract(placement);
  Optimizer optimizer({.learning_rate = settings_.imitation.learning_rate, .clip_norm = 1});
  for (std::int64_t step = 0; step < settings_.imitation.steps && !environment.spent(); ++step) {
    regroup(rng);
    const std::vector<DeviceId> goal = now(given_);
    std::vector<std::vector<DeviceId>> from;
    const std::int64_t count = environment.affordable(kStatesOfImitation);
    for (std::int64_t i = 0; i < count; ++i) {
      from.push_back(towards(goal, random_devices(policy_, rng), rng));
    }
    DecisionGradient gradient = imitation_gradient(policy_, goal, from, environment, rng);
    if (std::exp(gradient.log_likelihood) >= settings_.imitation.likelihood) break;
    optimizer.step(policy_.parameters().tensors(), std::move(gradient.by_parameter));
  }
}

void Episodes::save(StateWriter& state) const {
  state.put("episodes", episodes_);
  put_devices(state, "given", given_);
  put_devices(state, "best_units", best_);
  state.put("best_runtime", best_runtime_);
  for (const auto& [name, tensor] : policy_.parameters().named()) {
    state.put("policy." + name, tensor);
  }
  baseline_.save(state, "baseline");
  optimizer_.save(state, "optimizer");
  if (grouping_) grouping_->save(state);
}

void Episodes::load(const StateReader& state) {
  episodes_ = state.count("episodes");
  given_ = devices_of_units(state, "given", lasting());
  best_ = devices_of_units(state, "best_units", lasting());
  best_runtime_ = best_runtime_of(state);
  for (const auto& [name, tensor] : policy_.parameters().named()) {
    state.load("policy." + name, tensor);
  }
  // The units of an episode differ where groups are learned, and the baseline is the last one's.
  const auto known = grouping_ ? std::optional<std::size_t>() : static_cast<std::size_t>(steps());
  baseline_.load(state, "baseline", known);
  optimizer_.load(state, "optimizer", policy_.parameters().device());
  if (grouping_) grouping_->load(state);
}

}  // namespace

MethodPtr placeto_episodes(UnitGraph units, const EpisodeSettings& settings,
                           const std::string& device, Rng& rng) {
  return std::make_shared<Episodes>(std::move(units), settings, torch::Device(device), rng);
}

}  // namespace emplace::learn
