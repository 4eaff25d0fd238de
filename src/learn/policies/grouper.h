// HDP's grouper: a softmax over groups for every unit, by one hidden layer.
#pragma once

#include <cstdint>

#include "learn/nn/module.h"
#include "learn/policies/grouper_placer.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

// By unit: the numbers of its six nearest predecessors and six nearest successors, nearest first,
// as parts of the number of units; 0 where there are fewer.
Matrix neighbour_features(const UnitGraph& units);

// By unit: its place in locality_order (learn/units/orders.h), by time, from -1 to 1.
Matrix locality_feature(const UnitGraph& units);

// A unit's features are its types' embedding (the mean over its ops), locality_feature, the other
// columns of unit_features, and neighbour_features.
class Grouper {
 public:
  Grouper(Parameters& parameters, const UnitGraph& units, std::int64_t groups,
          const GrouperPlacerSettings& settings, Rng& rng);

  // [units, groups], with gradients.
  torch::Tensor logits() const;
  // Whether logits are bounded, and so may be explored by noise in proportion to them.
  bool bounded() const { return settings_.first_groups == FirstGroups::kWeights; }

 private:
  void begin_as_slices(std::int64_t column);
  torch::Tensor inputs() const;

  GrouperPlacerSettings settings_;
  torch::Tensor fixed_;       // the logits of drawn groups
  torch::Tensor types_;       // [units, types]: shares of its ops
  torch::Tensor other_;       // [units, other features]
  torch::Tensor embeddings_;  // [types, type_width]
  Linear hidden_;
  Linear output_;
};

}  // namespace emplace::learn
