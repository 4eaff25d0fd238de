#include "learn/policies/table.h"

#include "learn/policies/independent.h"
#include "learn/policies/policy.h"

namespace emplace::learn {
namespace {

class TablePolicy final : public IndependentPolicy {
 public:
  TablePolicy(UnitGraph units, torch::Device device)
      : IndependentPolicy(std::move(units), device),
        logits_(parameters_.constant("logits", {num_units(), num_devices()}, 0)) {}

  bool fit(const Samples& elite, double uniform_share) override {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor hits =
        (elite.actions.unsqueeze(-1) == torch::arange(num_devices(), elite.actions.device()))
            .to(torch::kFloat32)
            .mean(0);
    const torch::Tensor possible = (mask() > -1).to(torch::kFloat32);
    const torch::Tensor uniform = possible / possible.sum(1, true);
    const torch::Tensor mixed = (1 - uniform_share) * hits + uniform_share * uniform;
    logits_.copy_(mixed.clamp_min(1e-12).log());
    return true;
  }

  bool restart(Rng&) override {
    const torch::NoGradGuard no_gradients;
    logits_.zero_();
    return true;
  }

 protected:
  torch::Tensor logits() override { return logits_; }

 private:
  torch::Tensor logits_;
};

}  // namespace

PolicyPtr table_policy(UnitGraph units, const std::string& device) {
  return std::make_shared<TablePolicy>(std::move(units), torch::Device(device));
}

}  // namespace emplace::learn
