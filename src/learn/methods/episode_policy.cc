#include "learn/methods/episode_policy.h"

#include <utility>

namespace emplace::learn {

EpisodePolicy::EpisodePolicy(UnitGraph units, const MessagePassingSettings& network,
                             bool with_memory, torch::Device device, Rng& rng)
    : units_(std::move(units)),
      precedence_(precedence_of(units_)),
      with_memory_(with_memory),
      features_(units_, with_memory),
      parameters_(device),
      network_(parameters_, precedence_.predecessors, precedence_.successors, features_.columns(),
               units_.num_devices(), network, rng),
      mask_(device_mask(units_, device)) {}

EpisodePolicy EpisodePolicy::on(UnitGraph units) const {
  EpisodePolicy result = *this;
  result.units_ = std::move(units);
  result.features_ = StateFeatures(result.units_, with_memory_);
  result.precedence_ = precedence_of(result.units_);
  result.network_ = network_.on(result.precedence_.predecessors, result.precedence_.successors);
  result.mask_ = device_mask(result.units_, parameters_.device());
  return result;
}

torch::Tensor EpisodePolicy::log_probs(std::span<const PlacementState* const> states) const {
  std::vector<std::int64_t> current;
  for (const PlacementState* state : states) current.push_back(state->current);
  const torch::Device device = parameters_.device();
  const torch::Tensor at = to_tensor(current, device);
  const torch::Tensor logits = network_(features_(states).to(device), at);
  return torch::log_softmax(logits + mask_.index_select(0, at), 1);
}

}  // namespace emplace::learn
