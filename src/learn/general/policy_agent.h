// An agent that samples whole placements and learns by PPO (GDP, Mars).
#pragma once

#include "learn/general/agent.h"
#include "learn/general/general_policy.h"
#include "learn/learners/ppo.h"

namespace emplace::learn {

// Of the settings' optimizer, the learning rate is what it would like to have alone; who sums the
// gradients takes the steps.
GeneralAgentPtr policy_agent(const Problem& problem, GeneralPolicyPtr policy,
                             const PpoSettings& settings);

}  // namespace emplace::learn
