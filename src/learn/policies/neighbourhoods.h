// Draws of thousands of units that mostly keep neighbours together: first every neighbourhood draws
// a device from the mean of its units' logits, then every unit from its own logits, to which a
// constant, the pull, was added for its neighbourhood's device. So a unit follows unless its own
// logits speak against it by more than the pull.
//
// The neighbourhoods' devices are decisions as the units' are, so the probability of a sample is
// the product of those of its decisions, each given those before it: learners need to know no more.
#pragma once

#include <cstdint>

#include "base/rng.h"

#include "learn/nn/torch.h"
#include "learn/policies/policy.h"

namespace emplace::learn {

// Decisions are those of the neighbourhoods, then those of the units.
class Neighbourhoods {
 public:
  // By unit, int64: 0 .. count - 1.
  Neighbourhoods(torch::Tensor of_unit, double pull);

  std::int64_t count() const { return count_; }

  // Logits [units, devices]; the mask, 0 or a large negative number, is added to them. A
  // neighbourhood may draw what any of its units may.
  Samples sample(const torch::Tensor& logits, const torch::Tensor& mask, std::int64_t count,
                 Rng& rng) const;
  // Each decision as it is likeliest, given those before it.
  Samples likeliest(const torch::Tensor& logits, const torch::Tensor& mask) const;
  // The entropy and the distributions are those of decisions by themselves, without the pull: what
  // keeps the logits from running away, not a part of the probability.
  Scores score(const torch::Tensor& logits, const torch::Tensor& mask,
               const Samples& samples) const;

  // The units' part of a sample's decisions.
  torch::Tensor unit_actions(const torch::Tensor& actions) const;
  // From the units' [1, units]: a neighbourhood is where most of its units are.
  torch::Tensor actions_for(const torch::Tensor& units, std::int64_t devices) const;

 private:
  // Log-probabilities: of neighbourhoods [count, devices]; of units [units, devices * devices], by
  // their neighbourhood's device, then their own.
  torch::Tensor of_neighbourhoods(const torch::Tensor& logits, const torch::Tensor& mask) const;
  torch::Tensor of_units(const torch::Tensor& masked_logits) const;
  // By unit [samples, units]: its neighbourhood's decision.
  torch::Tensor by_unit(const torch::Tensor& decisions) const;
  Samples followed(const torch::Tensor& units, const torch::Tensor& leaders,
                   const torch::Tensor& leader_log_probs, const torch::Tensor& uniform) const;

  torch::Tensor of_unit_;
  torch::Tensor sizes_;  // [count, 1]
  std::int64_t count_ = 0;
  double pull_;
};

}  // namespace emplace::learn
