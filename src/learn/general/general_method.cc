#include "learn/general/general_method.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

#include "learn/features/device_view.h"
#include "learn/general/agent.h"
#include "learn/general/finish.h"
#include "learn/general/kinds.h"
#include "learn/general/policy_file.h"
#include "learn/methods/method.h"
#include "learn/methods/saved_devices.h"
#include "learn/nn/optimizer.h"
#include "learn/train/state.h"

namespace emplace::learn {
namespace {

class GeneralMethod final : public Method {
 public:
  // The agent as it was made, untrained.
  GeneralMethod(GeneralAgentPtr agent, const PolicyFile& policy,
                const GeneralMethodSettings& settings)
      : agent_(std::move(agent)),
        settings_(settings),
        untrained_(agent_->parameters().values()),
        optimizer_({.learning_rate = agent_->learning_rate(), .clip_norm = 1}) {
    policy.load_into(agent_->parameters());
  }

  // The number of devices that did best is the one that is learned on.
  void prepare(Environment& environment, Rng& rng) override {
    const Incumbent& incumbent = environment.context().incumbent();
    const Finish finish(environment.problem());
    const std::vector<torch::Tensor> trained = agent_->parameters().values();
    std::optional<Evaluation> best;
    for (const std::size_t count : numbers_of_devices(environment.problem().cluster())) {
      if (environment.spent()) break;
      const std::vector<DeviceId> devices = agent_->views().fastest(count);
      agent_->use(devices);
      const auto try_likeliest = [&](std::int64_t proposals) {
        for (const Placement& proposed : agent_->propose(proposals, environment, rng)) {
          finish(proposed, devices, environment);
        }
      };
      try_likeliest(count > 1 ? settings_.proposals : 1);
      if (settings_.prior && count > 1) {
        agent_->parameters().assign(untrained_);
        try_likeliest(1);
        agent_->parameters().assign(trained);
      }
      const std::optional<Evaluation> now = incumbent.value();
      if (now && (!best || *now < *best)) {
        best = now;
        devices_ = devices;
      }
    }
    const bool insisted = finish.insist(environment, rng);
    if (insisted || devices_.empty())
      devices_ = agent_->views().fastest(environment.problem().num_devices());
    agent_->use(devices_);
    from_ = incumbent.best();
  }

  void imitate(const Placement& placement, Environment& environment, Rng& rng) override {
    devices_ = agent_->views().fastest(environment.problem().num_devices());
    agent_->use(devices_);
    Optimizer optimizer({.learning_rate = kImitation.learning_rate, .clip_norm = 1});
    for (std::int64_t step = 0; step < kImitation.steps && !environment.spent(); ++step) {
      Imitation imitation = agent_->imitate(placement, environment, rng);
      if (imitation.likelihood >= kImitation.likelihood) break;
      optimizer.step(agent_->parameters().tensors(), std::move(imitation.gradient));
    }
  }

  std::int64_t round_size() const override { return agent_->round_size(); }
  bool done() const override { return rounds_ >= settings_.rounds; }

  bool round(Environment& environment, Rng& rng, TrainingPoint& point) override {
    const bool explored = from_ ? agent_->refine(*from_, environment, rng, point)
                                : agent_->explore(environment, rng, point);
    if (!explored) return false;
    for (std::int64_t epoch = 0; epoch < agent_->epochs(); ++epoch) {
      point.gradient_norm = optimizer_.step(agent_->parameters().tensors(), agent_->gradient());
    }
    ++rounds_;
    return true;
  }

  void save(StateWriter& state) const override {
    state.put("rounds", rounds_);
    put_devices(state, "devices", devices_);
    const Solution from = from_.value_or(Solution{});
    put_devices(state, "from", from.placement);
    state.put("from_priorities", from.schedule.priorities);
    state.put("from_step", from.value.step);
    state.put("from_overflow", from.value.overflow);
    for (const auto& [name, tensor] : agent_->parameters().named()) {
      state.put("policy." + name, tensor);
    }
    optimizer_.save(state, "optimizer");
    agent_->save(state);
  }
  void load(const StateReader& state) override {
    const Problem& problem = agent_->views().units().problem();
    rounds_ = state.count("rounds");
    devices_ = device_set(state, "devices", problem.num_devices());
    agent_->use(devices_);
    load_from(state, problem);
    for (const auto& [name, tensor] : agent_->parameters().named()) {
      state.load("policy." + name, tensor);
    }
    optimizer_.load(state, "optimizer", agent_->parameters().device());
    agent_->load(state);
  }

 private:
  void load_from(const StateReader& state, const Problem& problem) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    Placement from = saved_placement(state, "from", problem);
    Schedule schedule = saved_schedule(state, "from_priorities", problem);
    if (from.empty()) return;
    from_.emplace();
    from_->placement = std::move(from);
    from_->schedule = std::move(schedule);
    from_->value = {state.integer("from_step", 0, kMost), state.integer("from_overflow", 0, kMost)};
  }

  static constexpr ImitationSettings kImitation{.learning_rate = 3e-3};

  GeneralAgentPtr agent_;
  GeneralMethodSettings settings_;
  std::vector<torch::Tensor> untrained_;
  Optimizer optimizer_;
  std::vector<DeviceId> devices_;
  // What the next round begins from. Not the incumbent: a round that was cut short, and is done
  // again, may have improved that.
  std::optional<Solution> from_;
  std::int64_t rounds_ = 0;
};

}  // namespace

std::vector<std::size_t> numbers_of_devices(const Cluster& cluster) {
  constexpr std::size_t kFew = 4;
  const std::size_t all = cluster.num_devices();
  std::size_t accelerators = 0;
  for (DeviceId device = 0; device < all; ++device) accelerators += cluster.is_cpu(device) ? 0 : 1;
  std::vector<std::size_t> result{all};
  const auto add = [&](std::size_t count) {
    if (count > 0 && std::find(result.begin(), result.end(), count) == result.end()) {
      result.push_back(count);
    }
  };
  add(accelerators);
  for (std::size_t count = 1; count < all; count = count < kFew ? count + 1 : 2 * count) add(count);
  return result;
}

MethodPtr general_method(const Problem& problem, const std::string& policy,
                         const std::string& policy_name, const GeneralMethodSettings& settings,
                         const std::string& device, Rng& rng) {
  const PolicyFile file(policy, policy_name);
  if (file.kind() != settings.kind) {
    fail_input("{}: a policy of {}; expected one of {}", policy_name, file.kind(), settings.kind);
  }
  GeneralAgentPtr agent = make_agent(settings.kind, problem, file.network(), device, rng);
  return std::make_shared<GeneralMethod>(std::move(agent), file, settings);
}

}  // namespace emplace::learn
