// A pupil that samples whole placements and learns by PPO (GDP, Mars).
#pragma once

#include "learn/general/general_policy.h"
#include "learn/general/pupil.h"
#include "learn/learners/ppo.h"

namespace emplace::learn {

// Of the settings' optimizer, the learning rate is what it would like to have alone; who sums the
// gradients takes the steps.
PupilPtr policy_pupil(const Problem& problem, GeneralPolicyPtr policy, const PpoSettings& settings);

}  // namespace emplace::learn
