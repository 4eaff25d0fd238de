// Policies that decide about every unit on its own, from logits that do not depend on the samples
// (Post's table, GDP's network).
#pragma once

#include "learn/policies/policy.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

class IndependentPolicy : public Policy {
 public:
  Samples sample(std::int64_t count, Rng& rng) override;
  Scores score(const Samples& samples) override;
  Placement placement(const Samples& samples, std::int64_t index) const override;
  Samples actions_for(const Placement& placement) override;

 protected:
  IndependentPolicy(UnitGraph units, torch::Device device);

  // [units, devices], with gradients; the mask is added afterwards.
  virtual torch::Tensor logits() = 0;

  const UnitGraph& units() const { return units_; }
  const torch::Tensor& mask() const { return mask_; }
  std::int64_t num_units() const { return units_.size(); }
  std::int64_t num_devices() const { return units_.num_devices(); }

 private:
  UnitGraph units_;
  torch::Tensor mask_;
};

// By unit: about `count` neighbourhoods (learn/policies/neighbourhoods.h), as Placeto would group
// them.
torch::Tensor neighbourhoods_of(const UnitGraph& units, std::int64_t count, torch::Device device);

// A sample's decisions about units as a placement, and back.
Placement unit_placement(const UnitGraph& units, const torch::Tensor& actions, std::int64_t row);
torch::Tensor unit_actions(const UnitGraph& units, const Placement& placement,
                           torch::Device device);  // [1, units]

}  // namespace emplace::learn
