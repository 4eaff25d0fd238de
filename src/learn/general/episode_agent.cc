#include "learn/general/episode_agent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "learn/general/blocks.h"
#include "learn/general/general_episode_policy.h"
#include "learn/general/leanings.h"
#include "learn/methods/episode_imitation.h"
#include "learn/methods/episode_run.h"
#include "learn/methods/saved_devices.h"
#include "learn/train/state.h"

namespace emplace::learn {
namespace {

// Short episodes of a round of refining, one after the other, each from the best so far. A long one
// would leave the neighbourhood of what is good before it has seen it.
constexpr int kSittings = 8;

class EpisodeAgent final : public GeneralAgent {
 public:
  EpisodeAgent(UnitGraph units, const GeneralNetwork& network, const EpisodeAgentSettings& settings,
               torch::Device device, Rng& rng)
      : settings_(settings),
        policy_(std::move(units), network, device, rng),
        runtimes_(policy_.units().problem(), settings.runtime) {}

  Parameters& parameters() override { return policy_.parameters(); }
  const DeviceViews& views() const override { return policy_.views(); }
  void use(std::span<const DeviceId> devices) override { policy_.use(devices); }
  std::int64_t round_size() const override {
    return settings_.workers * (static_cast<std::int64_t>(policy_.units().size()) + 1);
  }

  bool explore(Environment& environment, Rng& rng, TrainingPoint& point) override {
    threads_ = environment.budget().threads;
    trajectories_.clear();
    for (std::int64_t worker = 0; worker < settings_.workers; ++worker) {
      trajectories_.push_back(
          trajectory(worker < anywhere() ? random_devices(policy_, rng) : policy_.slices()));
    }
    const EpisodeReport report = play_episode(policy_, runtimes_, environment, rng, trajectories_);
    describe(report, trajectories_, 1, point);
    if (!report.complete) return false;
    weigh_decisions();
    return true;
  }

  // Each worker has a block of its own, of the same size, and leans to a device.
  bool refine(Solution& from, Environment& environment, Rng& rng, TrainingPoint& point) override {
    if (!blocks_) blocks_.emplace(policy_.units());
    threads_ = environment.budget().threads;
    trajectories_.clear();
    trajectories_.reserve(static_cast<std::size_t>(kSittings * settings_.workers));
    decisions_.clear();
    std::vector<DeviceId> given = policy_.units().contract(from.placement);
    Best best = best_;
    for (int sitting = 0; sitting < kSittings; ++sitting) {
      const std::size_t size = blocks_->size_at_random(rng);
      std::vector<Trajectory> own;
      for (std::int64_t worker = 0; worker < settings_.workers; ++worker) {
        const bool at_given = best.devices.empty() || (sitting == 0 && worker == 0);
        Trajectory next{.devices = at_given ? given : best.devices,
                        .turns = blocks_->draw(size, rng)};
        next.leaning =
            leaning_elsewhere(next.turns, next.devices, used(), policy_.units().num_devices(), rng);
        own.push_back(std::move(next));
      }
      const EpisodeReport report = play_episode(policy_, runtimes_, environment, rng, own);
      best.hear(report);
      describe(report, own, kSittings, point);
      if (!report.complete) return false;
      keep_decisions(std::move(own));
    }
    best_ = std::move(best);
    return true;
  }

  // Divided by the number of decisions, so that large graphs do not drown small ones.
  std::vector<torch::Tensor> gradient() override {
    std::vector<torch::Tensor> result =
        gradient_of(policy_, decisions_, settings_.entropy_weight, threads_).by_parameter;
    const auto count = static_cast<double>(std::max<std::size_t>(1, decisions_.size()));
    for (torch::Tensor& tensor : result) tensor /= count;
    return result;
  }

  Imitation imitate(const Placement& placement, Environment& environment, Rng& rng) override {
    const std::vector<DeviceId> goal = policy_.units().contract(placement);
    std::vector<std::vector<DeviceId>> from{towards(goal, random_devices(policy_, rng), rng),
                                            towards(goal, policy_.slices(), rng)};
    from.resize(
        static_cast<std::size_t>(environment.affordable(static_cast<std::int64_t>(from.size()))));
    DecisionGradient gradient = imitation_gradient(policy_, goal, from, environment, rng);
    return {.gradient = std::move(gradient.by_parameter),
            .likelihood = std::exp(gradient.log_likelihood)};
  }

  std::vector<Placement> propose(std::int64_t count, Environment& environment, Rng& rng) override {
    const std::int64_t affordable = environment.affordable(count);
    if (affordable == 0) return {};
    const std::int64_t leaning = affordable / 2;
    const torch::Tensor all_leanings = leanings(1 + leaning, policy_.units().num_devices(), rng);
    std::vector<Trajectory> trajectories;
    for (std::int64_t i = 0; i < affordable; ++i) {
      const bool greedy = i <= leaning;
      trajectories.push_back(
          trajectory(greedy ? policy_.slices(all_leanings[i]) : policy_.slices()));
      trajectories.back().greedy = greedy;
    }
    const EpisodeReport report = play_episode(policy_, runtimes_, environment, rng, trajectories);
    best_.hear(report);
    std::vector<Placement> result{policy_.units().expand(end_of(trajectories.front()))};
    if (!report.best.empty()) result.push_back(policy_.units().expand(report.best));
    if (result.front() == result.back()) result.resize(1);
    return result;
  }

  void save(StateWriter& state) const override {
    state.put("best_runtime", best_.runtime);
    put_devices(state, "best_units", best_.devices);
    state.put("baselines", static_cast<std::int64_t>(baselines_.size()));
    std::int64_t number = 0;
    for (const auto& [key, baseline] : baselines_) {
      const std::string prefix = name_of(number++);
      put_devices(state, prefix + ".devices", key.first);
      state.put(prefix + ".anywhere", std::int64_t{key.second ? 1 : 0});
      baseline.save(state, prefix);
    }
  }
  void load(const StateReader& state) override {
    best_.runtime = best_runtime_of(state);
    best_.devices = devices_of_units(state, "best_units", policy_.units());
    baselines_.clear();
    const std::vector<DeviceId> in_use = used();
    const std::int64_t count = state.count("baselines");
    for (std::int64_t number = 0; number < count; ++number) {
      const std::string prefix = name_of(number);
      const Beginning key{device_set(state, prefix + ".devices", policy_.units().num_devices()),
                          state.integer(prefix + ".anywhere", 0, 1) != 0};
      policy_.use(key.first);
      baselines_.try_emplace(key, settings_.baseline_episodes)
          .first->second.load(state, prefix, turns().size());
    }
    policy_.use(in_use);
  }

 private:
  // Of all states that it has seen.
  struct Best {
    double runtime = std::numeric_limits<double>::infinity();
    std::vector<DeviceId> devices = {};  // by unit

    void hear(const EpisodeReport& report) {
      if (report.best_runtime >= runtime) return;
      runtime = report.best_runtime;
      devices = report.best;
    }
  };
  // The devices in use, and whether episodes begin anywhere.
  using Beginning = std::pair<std::vector<DeviceId>, bool>;

  static std::string name_of(std::int64_t baseline) {
    return "baseline" + std::to_string(baseline);
  }
  static std::vector<DeviceId> end_of(const Trajectory& trajectory) {
    std::vector<DeviceId> devices = trajectory.devices;
    if (!trajectory.decisions.empty()) {
      const Decision& last = trajectory.decisions.back();
      devices = last.state.devices;
      devices[last.state.current] = last.device;
    }
    return devices;
  }
  std::vector<DeviceId> used() const { return {policy_.used().begin(), policy_.used().end()}; }

  // What a report says of one of `parts` parts of a round.
  static void describe(const EpisodeReport& report, const std::vector<Trajectory>& trajectories,
                       int parts, TrainingPoint& point) {
    if (report.best_step > 0 && (point.round_best == 0 || report.best_step < point.round_best)) {
      point.round_best = report.best_step;
    }
    point.mean_seconds += report.last_seconds / parts;  // what it begins with is not its own
    point.fitting_share += report.fitting_share / parts;
    if (!report.complete) return;
    for (const Trajectory& trajectory : trajectories) {
      point.mean_cost +=
          trajectory.runtimes.back() / static_cast<double>(trajectories.size()) / parts;
    }
  }

  // Of a sitting, compared with the mean of its own. Decisions point to the trajectories' states,
  // which move to where they stay first.
  void keep_decisions(std::vector<Trajectory> own) {
    const std::size_t first = trajectories_.size();
    for (Trajectory& trajectory : own) trajectories_.push_back(std::move(trajectory));
    StepBaseline baseline(1);
    const std::vector<WeightedDecision> more = weighted_decisions(
        std::span(trajectories_).subspan(first), EpisodeReward::kImprovement, baseline);
    decisions_.insert(decisions_.end(), more.begin(), more.end());
  }

  // How many workers do not begin at slices.
  std::int64_t anywhere() const { return (settings_.workers + 1) / 2; }

  // It is the turn of every unit that has a choice.
  std::vector<UnitId> turns() const {
    std::vector<UnitId> result;
    for (const UnitId unit : policy_.order()) {
      if (policy_.choices(unit).size() > 1) result.push_back(unit);
    }
    return result;
  }
  Trajectory trajectory(std::vector<DeviceId> devices) const {
    return {.devices = std::move(devices), .turns = turns()};
  }

  // What there is to gain depends on where an episode begins and on the devices, so each has a
  // baseline of its own.
  void weigh_decisions() {
    decisions_.clear();
    const std::span<const Trajectory> all = trajectories_;
    const auto split = static_cast<std::size_t>(anywhere());
    for (const auto& part : {all.first(split), all.subspan(split)}) {
      if (part.empty()) continue;
      const Beginning key{used(), part.data() == all.data()};
      StepBaseline& baseline =
          baselines_.try_emplace(key, settings_.baseline_episodes).first->second;
      const std::vector<WeightedDecision> decisions =
          weighted_decisions(part, EpisodeReward::kImprovement, baseline);
      decisions_.insert(decisions_.end(), decisions.begin(), decisions.end());
    }
  }

  EpisodeAgentSettings settings_;
  GeneralEpisodePolicy policy_;
  Runtimes runtimes_;
  std::map<Beginning, StepBaseline> baselines_;
  std::optional<Blocks> blocks_;  // once it has refined
  Best best_;
  int threads_ = 1;
  std::vector<Trajectory> trajectories_;
  std::vector<WeightedDecision> decisions_;  // of these
};

}  // namespace

GeneralAgentPtr episode_agent(UnitGraph units, const GeneralNetwork& network,
                              const EpisodeAgentSettings& settings, const std::string& device,
                              Rng& rng) {
  return std::make_shared<EpisodeAgent>(std::move(units), network, settings, torch::Device(device),
                                        rng);
}

}  // namespace emplace::learn
