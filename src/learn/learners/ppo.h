// Proximal policy optimisation over whole placements, which have one cost each: clipped ratios
// (GDP, Mars) or an adaptive KL penalty (Spotlight, Post). Ratios are of single decisions and
// summed.
#pragma once

#include <cstdint>

#include "cost/problem.h"

#include "learn/nn/optimizer_settings.h"
#include "learn/parts.h"
#include "learn/train/costs.h"

namespace emplace::learn {

struct PpoSettings {
  std::int64_t batch = 20;
  std::int64_t epochs = 4;  // gradient steps on a batch
  OptimizerSettings optimizer = {};
  CostSettings cost = {};
  double baseline_decay = 0.9;      // of the moving average; 1: the mean of all costs
  bool normalize_advantage = true;  // by the batch's deviation
  double entropy_weight = 0;
  // Clipping, where positive; else the KL penalty.
  double clip = 0.2;
  // With clipping, where positive: a batch's steps are to move the policy so far, as the divergence
  // over the entropy. The learning rate follows, beginning with the optimizer's; a step that goes
  // four times as far is taken back.
  double kl_share = 0;
  double kl_weight = 1;     // beta at first
  double kl_target = 0.03;  // per decision: beta doubles above 1.5 times it, halves below 1 / 1.5
};

LearnerPtr ppo(const Problem& problem, const PpoSettings& settings);

}  // namespace emplace::learn
