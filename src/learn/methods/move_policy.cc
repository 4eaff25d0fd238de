#include "learn/methods/move_policy.h"

#include <algorithm>

#include "learn/nn/single_thread.h"

namespace emplace::learn {
namespace {

// Rows, states times units, that are worked on at once.
constexpr std::size_t kRowsOfPiece = 1024;
// Inside the logarithm of the entropy, as published.
constexpr double kEntropyFloor = 1e-3;

DecisionGradient gradient_of_piece(const MovePolicy& policy,
                                   std::span<const WeightedDecision> decisions,
                                   double entropy_weight) {
  const torch::Device device = policy.parameters().device();
  std::vector<const PlacementState*> states;
  std::vector<std::int64_t> actions;
  torch::Tensor advantages =
      torch::empty({static_cast<std::int64_t>(decisions.size())}, torch::kFloat32);
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    states.push_back(decisions[i].state);
    actions.push_back(decisions[i].device);
    advantages.data_ptr<float>()[i] = static_cast<float>(decisions[i].advantage);
  }
  const torch::Tensor log_probs = policy.log_probs(states);
  const torch::Tensor chosen = log_prob_of(log_probs, to_tensor(actions, device));
  const torch::Tensor probs = log_probs.exp();
  const torch::Tensor entropy = -(probs * (probs + kEntropyFloor).log()).sum();
  const torch::Tensor loss = -(advantages.to(device) * chosen).sum() - entropy_weight * entropy;
  return {.by_parameter = torch::autograd::grad({loss}, policy.parameters().tensors(), {},
                                                /*retain_graph=*/false, /*create_graph=*/false,
                                                /*allow_unused=*/true),
          .log_likelihood = chosen.sum().item<double>(),
          .entropy = entropy.item<double>()};
}

}  // namespace

std::vector<DeviceId> random_devices(const MovePolicy& policy, Rng& rng) {
  std::vector<DeviceId> devices(policy.units().size());
  for (UnitId unit = 0; unit < policy.units().size(); ++unit) {
    devices[unit] = rng.pick(policy.choices(unit));
  }
  return devices;
}

DecisionGradient gradient_of(const MovePolicy& policy, std::span<const WeightedDecision> decisions,
                             double entropy_weight, int threads) {
  const std::size_t size =
      std::max<std::size_t>(1, kRowsOfPiece / std::max<std::size_t>(1, policy.units().size()));
  std::vector<DecisionGradient> pieces((decisions.size() + size - 1) / size);
  parallel_for_tensors(pieces.size(), threads, [&](std::size_t i) {
    const std::size_t first = i * size;
    pieces[i] = gradient_of_piece(
        policy, decisions.subspan(first, std::min(size, decisions.size() - first)), entropy_weight);
  });
  DecisionGradient sum;
  for (const torch::Tensor& parameter : policy.parameters().tensors()) {
    sum.by_parameter.push_back(torch::zeros_like(parameter));
  }
  for (const DecisionGradient& piece : pieces) {
    for (std::size_t p = 0; p < sum.by_parameter.size(); ++p) {
      if (piece.by_parameter[p].defined()) sum.by_parameter[p].add_(piece.by_parameter[p]);
    }
    sum.log_likelihood += piece.log_likelihood / static_cast<double>(decisions.size());
    sum.entropy += piece.entropy / static_cast<double>(decisions.size());
  }
  return sum;
}

}  // namespace emplace::learn
