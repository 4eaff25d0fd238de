// A policy that decides about one unit of a whole placement at a time (Placeto), and how it learns
// from decisions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

#include "learn/methods/placement_states.h"
#include "learn/nn/module.h"
#include "learn/nn/torch.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

class MovePolicy {
 public:
  virtual ~MovePolicy() = default;

  virtual const UnitGraph& units() const = 0;
  virtual const StateFeatures& features() const = 0;
  virtual const Parameters& parameters() const = 0;
  // Every unit once: in which order it is their turn, those that others wait for first.
  virtual std::span<const UnitId> order() const = 0;
  // Where the unit may go: never empty.
  virtual std::span<const DeviceId> choices(UnitId unit) const = 0;

  // [states, devices]: of each state's current unit. May be called from several threads at once.
  virtual torch::Tensor log_probs(std::span<const PlacementState* const> states) const = 0;
};

// Every unit anywhere that it may go.
std::vector<DeviceId> random_devices(const MovePolicy& policy, Rng& rng);

struct Decision {
  PlacementState state;  // before it
  DeviceId device = 0;
  float log_prob = 0;
};

// A decision and by how much it should become more likely.
struct WeightedDecision {
  const PlacementState* state = nullptr;
  DeviceId device = 0;
  double advantage = 0;
};

struct DecisionGradient {
  std::vector<torch::Tensor> by_parameter;
  double log_likelihood = 0;  // mean over the decisions
  double entropy = 0;         // likewise
};

// Of the sum over all decisions of -advantage * log p(device) - entropy_weight * entropy. Works
// through the decisions in pieces, so that memory does not grow with their number; the pieces, and
// so the result, do not depend on `threads`.
DecisionGradient gradient_of(const MovePolicy& policy, std::span<const WeightedDecision> decisions,
                             double entropy_weight, int threads);

}  // namespace emplace::learn
