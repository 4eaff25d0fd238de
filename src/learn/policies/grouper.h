// HDP's grouper: a softmax over groups for every unit, by one hidden layer.
#pragma once

#include <cstdint>
#include <span>

#include "learn/nn/module.h"
#include "learn/nn/torch.h"
#include "learn/policies/grouper_placer.h"

namespace emplace::learn {

// By unit: the numbers of its six nearest predecessors and six nearest successors, nearest first,
// as parts of the number of units; 0 where there are fewer.
Matrix neighbour_features(const UnitGraph& units);

// By unit: its place in an order of all units, by time, from -1 to 1.
Matrix place_feature(const UnitGraph& units, std::span<const UnitId> order);

// A unit's features are its types' embedding (the mean over its ops), the other columns of
// unit_features, neighbour_features and, under Features::kAll, place_feature, of the order that the
// first groups are pieces of, or else of locality_order (learn/units/orders.h).
//
// Under FirstGroups::kSlices and kStages the logits are a constant that puts every unit into its
// slice, plus what the network makes of the features, which is 0 at first. That part is bounded by
// the constant's range, so it can outweigh the constant, and gradient steps of the usual size leave
// nearly every unit where it is.
class Grouper {
 public:
  Grouper(Parameters& parameters, const UnitGraph& units, std::int64_t groups,
          const GrouperPlacerSettings& settings, Rng& rng);

  // [units, groups], with gradients.
  torch::Tensor logits() const;
  // Whether logits are the network's alone, and so may be explored by noise in proportion to them.
  bool noisy() const { return settings_.first_groups == FirstGroups::kWeights; }

 private:
  void begin_as_slices(const torch::Tensor& place);
  torch::Tensor inputs() const;

  GrouperPlacerSettings settings_;
  torch::Tensor fixed_;       // the logits of drawn groups
  torch::Tensor slices_;      // [units, groups]: the constant part, if any
  double lead_ = 0;           // how far it goes below 0
  torch::Tensor types_;       // [units, types]: shares of its ops
  torch::Tensor other_;       // [units, other features]
  torch::Tensor embeddings_;  // [types, type_width]
  Linear hidden_;
  Linear output_;
};

}  // namespace emplace::learn
