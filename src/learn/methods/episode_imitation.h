// How a policy that moves one unit at a time is shown a placement (Placeto).
#pragma once

#include <vector>

#include "base/rng.h"

#include "learn/methods/move_policy.h"
#include "learn/train/environment.h"

namespace emplace::learn {

// Some units are where the goal has them, the others where they were: as few or as many as it
// happens, so that the policy knows the way back from everywhere.
std::vector<DeviceId> towards(const std::vector<DeviceId>& goal, std::vector<DeviceId> devices,
                              Rng& rng);

// Of how unlikely the goal's devices are, for units whose turn it is in these placements: the mean
// over some of them. Evaluates each placement.
DecisionGradient imitation_gradient(const MovePolicy& policy, const std::vector<DeviceId>& goal,
                                    const std::vector<std::vector<DeviceId>>& from,
                                    Environment& environment, Rng& rng);

}  // namespace emplace::learn
