#include "learn/methods/episodes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "learn/methods/episode_policy.h"
#include "learn/methods/episode_run.h"
#include "learn/optimizer.h"
#include "learn/state.h"

namespace emplace::learn {
namespace {

// Of one evaluated state, how many units a placement is imitated for.
constexpr std::int64_t kTurnsOfImitation = 16;
// States that one step of imitation looks at.
constexpr std::int64_t kStatesOfImitation = 2;

class Episodes final : public Method {
 public:
  Episodes(UnitGraph units, const EpisodeSettings& settings, torch::Device device, Rng& rng)
      : settings_(settings),
        policy_(std::move(units), settings.network, settings.memory_feature, device, rng),
        runtimes_(policy_.units().problem(), settings.runtime),
        baseline_(settings.baseline_episodes),
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
  std::vector<DeviceId> random_devices(Rng& rng) const;
  std::vector<DeviceId> zero_devices() const;
  std::vector<DeviceId> first_devices(Environment& environment, Rng& rng) const;
  std::vector<UnitId> turns(Rng& rng) const;
  void learn(const std::vector<Trajectory>& trajectories, int threads, TrainingPoint& point);
  std::vector<PlacementState> states_near(const std::vector<DeviceId>& goal,
                                          Environment& environment, Rng& rng) const;

  EpisodeSettings settings_;
  EpisodePolicy policy_;
  Runtimes runtimes_;
  StepBaseline baseline_;
  Optimizer optimizer_;
  std::int64_t episodes_ = 0;
  std::vector<DeviceId> given_;  // by unit, or empty: none was imitated
  std::vector<DeviceId> best_;   // by unit, or empty: none yet
  double best_runtime_ = std::numeric_limits<double>::infinity();
};

double Episodes::entropy_weight() const {
  const double done = std::min(
      1.0, static_cast<double>(episodes_) / static_cast<double>(settings_.entropy_episodes));
  return settings_.entropy_weight +
         done * (std::min(settings_.entropy_weight, settings_.last_entropy_weight) -
                 settings_.entropy_weight);
}

std::vector<DeviceId> Episodes::random_devices(Rng& rng) const {
  const UnitGraph& units = policy_.units();
  std::vector<DeviceId> devices(units.size());
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    devices[unit] = rng.pick(units.allowed_devices(unit));
  }
  return devices;
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
      if (!best_.empty()) return best_;
      break;
    case EpisodeStart::kGiven:
      if (!given_.empty()) return given_;
      const std::vector<Solution>& starts = environment.evaluator().starts();
      if (!starts.empty()) return policy_.units().contract(starts.front().placement);
      break;
  }
  return random_devices(rng);
}

std::vector<UnitId> Episodes::turns(Rng& rng) const {
  std::vector<UnitId> once(policy_.units().size());
  std::iota(once.begin(), once.end(), UnitId{0});
  if (settings_.random_order) rng.shuffle(once);
  std::vector<UnitId> all;
  for (std::int64_t pass = 0; pass < settings_.passes; ++pass) {
    all.insert(all.end(), once.begin(), once.end());
  }
  return all;
}

bool Episodes::round(Environment& environment, Rng& rng, TrainingPoint& point) {
  Rng episode_rng = rng;
  std::vector<Trajectory> trajectories;
  const std::int64_t count = settings_.workers + (greedy_turn() ? 1 : 0);
  for (std::int64_t worker = 0; worker < count; ++worker) {
    trajectories.push_back({.devices = first_devices(environment, episode_rng),
                            .turns = turns(episode_rng),
                            .greedy = worker == settings_.workers});
  }
  const EpisodeReport report =
      play_episode(policy_, runtimes_, environment, episode_rng, trajectories);
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
    best_ = report.best;
  }
  trajectories.resize(static_cast<std::size_t>(settings_.workers));
  learn(trajectories, environment.budget().threads, point);
  ++episodes_;
  return true;
}

void Episodes::learn(const std::vector<Trajectory>& trajectories, int threads,
                     TrainingPoint& point) {
  const auto start = std::chrono::steady_clock::now();
  const auto workers = static_cast<double>(trajectories.size());
  std::vector<std::vector<double>> returns;
  std::vector<double> mean(static_cast<std::size_t>(steps()), 0);
  for (const Trajectory& trajectory : trajectories) {
    returns.push_back(returns_of(settings_.reward, trajectory.runtimes));
    for (std::size_t t = 0; t < mean.size(); ++t) mean[t] += returns.back()[t] / workers;
    point.mean_cost += trajectory.runtimes.back() / workers;
  }
  baseline_.add(std::move(mean));
  const std::vector<double> baseline = baseline_.values();
  std::vector<Lesson> lessons;
  for (std::size_t w = 0; w < trajectories.size(); ++w) {
    for (std::size_t t = 0; t < baseline.size(); ++t) {
      const Decision& decision = trajectories[w].decisions[t];
      lessons.push_back({&decision.state, decision.device, returns[w][t] - baseline[t]});
    }
  }
  LessonGradient gradient = gradient_of(policy_, lessons, entropy_weight(), threads);
  point.gradient_norm =
      optimizer_.step(policy_.parameters().tensors(), std::move(gradient.by_parameter));
  point.entropy = gradient.entropy;
  point.baseline = baseline.front();
  point.learner_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Some units are where the goal has them, the others anywhere: as few or as many as it happens, so
// that the policy knows the way back from everywhere.
std::vector<PlacementState> Episodes::states_near(const std::vector<DeviceId>& goal,
                                                  Environment& environment, Rng& rng) const {
  std::vector<std::vector<DeviceId>> near;
  std::vector<Placement> placements;
  const std::int64_t count = environment.affordable(kStatesOfImitation);
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<DeviceId> devices = random_devices(rng);
    const double share = rng.uniform();
    for (std::size_t unit = 0; unit < goal.size(); ++unit) {
      if (rng.chance(share)) devices[unit] = goal[unit];
    }
    placements.push_back(policy_.units().expand(devices));
    near.push_back(std::move(devices));
  }
  const std::vector<OutcomeWithStarts> outcomes =
      environment.evaluate_with_starts(std::move(placements)).get();
  std::vector<PlacementState> states;
  for (std::size_t i = 0; i < near.size(); ++i) {
    const std::vector<float> starts = policy_.features().starts(outcomes[i].starts);
    for (std::int64_t turn = 0; turn < kTurnsOfImitation; ++turn) {
      const auto current = static_cast<UnitId>(rng.below(goal.size()));
      std::vector<std::uint8_t> visits(goal.size(), 0);
      std::fill_n(visits.begin(), current, std::uint8_t{1});
      states.push_back({near[i], std::move(visits), starts, current});
    }
  }
  return states;
}

void Episodes::imitate(const Placement& placement, Environment& environment, Rng& rng) {
  given_ = policy_.units().contract(placement);
  Optimizer optimizer({.learning_rate = settings_.imitation.learning_rate, .clip_norm = 1});
  for (std::int64_t step = 0; step < settings_.imitation.steps && !environment.spent(); ++step) {
    const std::vector<PlacementState> states = states_near(given_, environment, rng);
    std::vector<Lesson> lessons;
    for (const PlacementState& state : states) {
      lessons.push_back({&state, given_[state.current], 1.0 / static_cast<double>(states.size())});
    }
    LessonGradient gradient = gradient_of(policy_, lessons, 0, environment.budget().threads);
    if (std::exp(gradient.log_likelihood) >= settings_.imitation.likelihood) break;
    optimizer.step(policy_.parameters().tensors(), std::move(gradient.by_parameter));
  }
}

void Episodes::save(StateWriter& state) const {
  state.put("episodes", episodes_);
  state.put("given", std::vector<std::int64_t>(given_.begin(), given_.end()));
  state.put("best_units", std::vector<std::int64_t>(best_.begin(), best_.end()));
  state.put("best_runtime", best_runtime_);
  for (const auto& [name, tensor] : policy_.parameters().named()) {
    state.put("policy." + name, tensor);
  }
  baseline_.save(state, "baseline");
  optimizer_.save(state, "optimizer");
}

void Episodes::load(const StateReader& state) {
  episodes_ = state.integer("episodes");
  const std::vector<std::int64_t> given = state.integers("given");
  given_.assign(given.begin(), given.end());
  const std::vector<std::int64_t> best = state.integers("best_units");
  best_.assign(best.begin(), best.end());
  best_runtime_ = state.real("best_runtime");
  for (const auto& [name, tensor] : policy_.parameters().named()) {
    state.load("policy." + name, tensor);
  }
  baseline_.load(state, "baseline");
  optimizer_.load(state, "optimizer", policy_.parameters().device());
}

}  // namespace

MethodPtr placeto_episodes(UnitGraph units, const EpisodeSettings& settings,
                           const std::string& device, Rng& rng) {
  return std::make_shared<Episodes>(std::move(units), settings, torch::Device(device), rng);
}

}  // namespace emplace::learn
