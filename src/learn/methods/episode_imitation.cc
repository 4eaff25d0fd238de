#include "learn/methods/episode_imitation.h"

#include <algorithm>
#include <utility>

namespace emplace::learn {
namespace {

// Units of one evaluated placement that the goal is imitated for.
constexpr std::int64_t kTurns = 16;

std::vector<PlacementState> states_of(const MovePolicy& policy,
                                      const std::vector<std::vector<DeviceId>>& from,
                                      Environment& environment, Rng& rng) {
  std::vector<Placement> placements;
  for (const std::vector<DeviceId>& devices : from) {
    placements.push_back(policy.units().expand(devices));
  }
  const std::vector<OutcomeWithStarts> outcomes =
      environment.evaluate_with_starts(std::move(placements)).get();
  std::vector<PlacementState> states;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::vector<float> starts = policy.features().starts(outcomes[i].starts);
    for (std::int64_t turn = 0; turn < kTurns; ++turn) {
      const auto current = static_cast<UnitId>(rng.below(policy.units().size()));
      std::vector<std::uint8_t> visits(policy.units().size(), 0);
      std::fill_n(visits.begin(), current, std::uint8_t{1});
      states.push_back({from[i], std::move(visits), starts, current});
    }
  }
  return states;
}

}  // namespace

std::vector<DeviceId> towards(const std::vector<DeviceId>& goal, std::vector<DeviceId> devices,
                              Rng& rng) {
  const double share = rng.uniform();
  for (std::size_t unit = 0; unit < goal.size(); ++unit) {
    if (rng.chance(share)) devices[unit] = goal[unit];
  }
  return devices;
}

DecisionGradient imitation_gradient(const MovePolicy& policy, const std::vector<DeviceId>& goal,
                                    const std::vector<std::vector<DeviceId>>& from,
                                    Environment& environment, Rng& rng) {
  const std::vector<PlacementState> states = states_of(policy, from, environment, rng);
  std::vector<WeightedDecision> decisions;
  for (const PlacementState& state : states) {
    decisions.push_back({&state, goal[state.current], 1.0 / static_cast<double>(states.size())});
  }
  return gradient_of(policy, decisions, 0, environment.budget().threads);
}

}  // namespace emplace::learn
