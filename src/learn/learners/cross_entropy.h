// Cross-entropy refits, alone and together with PPO as Post has them (Gao, Chen, Li, NeurIPS 2018).
#pragma once

#include <cstdint>

#include "cost/problem.h"

#include "learn/learners/ppo.h"
#include "learn/parts.h"

namespace emplace::learn {

struct CrossEntropySettings {
  std::int64_t batch = 20;         // K: samples between PPO's updates
  std::int64_t refit_after = 200;  // N: samples between refits
  double elite_share = 0.1;
  double uniform_share = 0.005;  // epsilon, mixed in after each refit
  CostSettings cost = {};
  // PPO's baseline hears of the samples of refits too, as of all that came before.
  bool tells_baseline = false;
};

// Refits alone.
LearnerPtr cross_entropy(const Problem& problem, const CrossEntropySettings& settings);
// Every K samples a PPO update, but every N a refit instead. Where K does not divide N, the refit
// comes after fewer than K samples, and counting begins anew with it.
LearnerPtr ppo_and_cross_entropy(const Problem& problem, const CrossEntropySettings& refit,
                                 const PpoSettings& ppo);

}  // namespace emplace::learn
