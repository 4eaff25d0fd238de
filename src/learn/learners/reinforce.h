// REINFORCE with a moving baseline (ColocRL, HDP; as TensorFlow's public code of HDP has it).
#pragma once

#include <cstdint>

#include "cost/problem.h"

#include "learn/nn/optimizer_settings.h"
#include "learn/parts.h"
#include "learn/train/costs.h"

namespace emplace::learn {

struct ReinforceSettings {
  std::int64_t batch = 4;
  OptimizerSettings optimizer = {};
  CostSettings cost = {};
  double baseline_decay = 0.9;
  // Where failures cost a signal, the baseline begins with it, as published, and not with the first
  // costs: until it has come down, after some 40 updates, every placement is a good one.
  bool baseline_begins_at_signal = true;
  double entropy_weight = 0;
  // After so many updates placements that do not fit count neither for the loss nor the baseline;
  // where they cost by what is missing (Shortage::kPenalty) they always count.
  std::int64_t mask_failures_after = 1000;
};

LearnerPtr reinforce(const Problem& problem, const ReinforceSettings& settings);

}  // namespace emplace::learn
