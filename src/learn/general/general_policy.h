// A policy (learn/policies/policy.h) whose parameters mean the same on every graph and for all
// devices.
#pragma once

#include <memory>

#include "learn/features/device_view.h"
#include "learn/policies/policy.h"

namespace emplace::learn {

class GeneralPolicy : public Policy {
 public:
  virtual const DeviceViews& views() const = 0;
  virtual void use(const DeviceView& view) = 0;
  // Every decision as it is likeliest, given those before it, when this much is added to the scores
  // of each device for all units: a sample for each row of `leanings` [samples, devices].
  virtual Samples likeliest(const torch::Tensor& leanings) = 0;
  Samples likeliest() {
    return likeliest(torch::zeros({1, views().units().num_devices()}, torch::kFloat32));
  }
  // As many samples as `open` [samples, units] has rows: units that are open draw anew, the others
  // stay where the placement has them, and each sample leans as its row of `leanings` [samples,
  // devices] says. Scores of these samples are of what was drawn: all else is certain.
  virtual Samples redraw(const Placement& placement, const torch::Tensor& open,
                         const torch::Tensor& leanings, Rng& rng) = 0;
  // See GeneralAgent::encoder_gradient.
  virtual std::vector<torch::Tensor> encoder_gradient(Rng& /*rng*/) { return {}; }

  // What it is made of refers to its units.
  GeneralPolicy(const GeneralPolicy&) = delete;
  GeneralPolicy& operator=(const GeneralPolicy&) = delete;

 protected:
  using Policy::Policy;

  // [samples, units, devices]: the mask [units, devices] where units are open, else all but the
  // device of `actions` [1, units] is forbidden.
  static torch::Tensor closed_but_for(const torch::Tensor& open, const torch::Tensor& mask,
                                      const torch::Tensor& actions) {
    constexpr double kForbidden = -1e9;
    const torch::Tensor here = torch::one_hot(actions.select(0, 0), mask.size(1));
    const torch::Tensor closed = (1 - here).to(mask.scalar_type()) * kForbidden;
    return torch::where(open.to(mask.device()).unsqueeze(-1), mask.unsqueeze(0),
                        closed.unsqueeze(0));
  }
};
using GeneralPolicyPtr = std::shared_ptr<GeneralPolicy>;

}  // namespace emplace::learn
