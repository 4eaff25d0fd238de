#include "learn/policies/independent.h"

#include "learn/units/groupings.h"

namespace emplace::learn {

IndependentPolicy::IndependentPolicy(UnitGraph units, torch::Device device)
    : Policy(device), units_(std::move(units)), mask_(device_mask(units_, device)) {}

Samples IndependentPolicy::sample(std::int64_t count, Rng& rng) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor all =
      torch::log_softmax(logits() + mask_, -1).unsqueeze(0).expand({count, -1, -1});
  Samples samples;
  samples.actions = draw(all, uniforms({count, all.size(1)}, rng));
  samples.log_probs = log_prob_of(all, samples.actions);
  return samples;
}

Scores IndependentPolicy::score(const Samples& samples) {
  const torch::Tensor log_probs = torch::log_softmax(logits() + mask_, -1);
  Scores scores;
  scores.log_probs =
      log_prob_of(log_probs.unsqueeze(0).expand({samples.size(), -1, -1}), samples.actions);
  scores.entropy = mean_entropy(log_probs);
  scores.distributions = {log_probs.unsqueeze(0)};
  return scores;
}

Placement IndependentPolicy::placement(const Samples& samples, std::int64_t index) const {
  return unit_placement(units_, samples.actions, index);
}

Samples IndependentPolicy::actions_for(const Placement& placement) {
  Samples samples;
  samples.actions = unit_actions(units_, placement, parameters_.device());
  return samples;
}

torch::Tensor neighbourhoods_of(const UnitGraph& units, std::int64_t count, torch::Device device) {
  const UnitGraph coarse = group_to_size(units.problem(), count);
  std::vector<std::int64_t> result;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    result.push_back(coarse.unit_of_group(units.groups(unit).front()));
  }
  return to_tensor(result, device);
}

Placement unit_placement(const UnitGraph& units, const torch::Tensor& actions, std::int64_t row) {
  const torch::Tensor own = actions.select(0, row).cpu().contiguous();
  const std::int64_t* values = own.data_ptr<std::int64_t>();
  std::vector<DeviceId> devices(units.size());
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i] = static_cast<DeviceId>(values[i]);
  return units.expand(devices);
}

torch::Tensor unit_actions(const UnitGraph& units, const Placement& placement,
                           torch::Device device) {
  std::vector<std::int64_t> values;
  for (const DeviceId chosen : units.contract(placement)) values.push_back(chosen);
  return to_tensor(values, device).unsqueeze(0);
}

}  // namespace emplace::learn
