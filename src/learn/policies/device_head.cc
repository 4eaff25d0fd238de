#include "learn/policies/device_head.h"

namespace emplace::learn {
namespace {

class FixedDevices final : public DeviceHead {
 public:
  FixedDevices(Parameters& parameters, const std::string& name, std::int64_t width,
               std::int64_t devices, double repeat, Rng& rng)
      : embeddings_(parameters.glorot(name + ".devices", devices + 1, width, rng)),
        output_(parameters.glorot(name + ".output", 2 * width, devices, rng)) {
    if (repeat <= 0) return;
    transitions_ = parameters.constant(name + ".transitions", {devices + 1, devices}, 0);
    const torch::NoGradGuard no_gradients;
    transitions_.narrow(0, 1, devices).fill_diagonal_(repeat);
  }

  torch::Tensor embeddings() const override { return embeddings_; }
  torch::Tensor transitions() const override { return transitions_; }
  torch::Tensor logits(const torch::Tensor& states, const torch::Tensor& contexts, std::int64_t,
                       std::int64_t) const override {
    const std::int64_t width = states.size(1);
    return torch::mm(states, output_.narrow(0, 0, width)) +
           torch::mm(contexts, output_.narrow(0, width, width));
  }

 private:
  torch::Tensor embeddings_;
  torch::Tensor output_;       // [2 width, devices]
  torch::Tensor transitions_;  // where there is a direct path
};

}  // namespace

DeviceHeadPtr fixed_devices(Parameters& parameters, const std::string& name, std::int64_t width,
                            std::int64_t devices, double repeat, Rng& rng) {
  return std::make_shared<FixedDevices>(parameters, name, width, devices, repeat, rng);
}

}  // namespace emplace::learn
