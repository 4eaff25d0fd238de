// Units one after the other, for policies that decide about them in turn.
#pragma once

#include <vector>

#include "learn/nn/module.h"
#include "learn/nn/torch.h"
#include "learn/policies/policy.h"
#include "learn/units/orders.h"

namespace emplace::learn {

class UnitSequence {
 public:
  // In locality_order, or else topological_order (learn/units/orders.h).
  UnitSequence(UnitGraph units, bool by_locality, torch::Device device);

  const UnitGraph& units() const { return units_; }
  std::int64_t size() const { return sequence_.size(0); }
  // By unit, as features are: the place in the sequence as waves, slow ones first, of which a
  // policy of blocks is made.
  torch::Tensor waves() const;
  // Rows by unit in the order of the sequence.
  torch::Tensor ordered(const torch::Tensor& by_unit) const {
    return by_unit.index_select(0, sequence_);
  }
  // In the order of the sequence, as decisions are.
  const torch::Tensor& mask() const { return mask_; }

  Placement placement(const Samples& samples, std::int64_t index) const;
  torch::Tensor actions_for(const Placement& placement) const;  // [1, units]

  // The logit of the previous device at which about `blocks` units are not where the one before
  // is; 0 blocks: 0.
  double repeat_for(double blocks) const;

 private:
  UnitGraph units_;
  std::vector<UnitId> order_;
  torch::Tensor sequence_;  // the same
  torch::Tensor mask_;
};

}  // namespace emplace::learn
