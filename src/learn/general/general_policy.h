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
  // See GeneralAgent::encoder_gradient.
  virtual std::vector<torch::Tensor> encoder_gradient(Rng& /*rng*/) { return {}; }

  // What it is made of refers to its units.
  GeneralPolicy(const GeneralPolicy&) = delete;
  GeneralPolicy& operator=(const GeneralPolicy&) = delete;

 protected:
  using Policy::Policy;
};
using GeneralPolicyPtr = std::shared_ptr<GeneralPolicy>;

}  // namespace emplace::learn
