#include "learn/methods/learned_grouping.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "learn/units/groupings.h"

namespace emplace::learn {
namespace {

// Of the moving average, from one episode to the next.
constexpr double kDecay = 0.9;

}  // namespace

LearnedGrouping::LearnedGrouping(UnitGraph members, std::int64_t groups,
                                 const OptimizerSettings& optimizer, torch::Device device, Rng& rng)
    : members_(std::move(members)),
      groups_(std::min<std::int64_t>(groups, members_.size())),
      parameters_(device),
      grouper_(parameters_, members_, groups_, {.first_groups = FirstGroups::kStages}, rng),
      baseline_(kDecay),
      optimizer_(optimizer) {}

UnitGraph LearnedGrouping::units_of(const torch::Tensor& group_of_member) const {
  const torch::Tensor on_cpu = group_of_member.to(torch::kCPU).contiguous();
  const auto* group = on_cpu.data_ptr<std::int64_t>();
  const Problem& problem = members_.problem();
  std::vector<std::uint32_t> labels(problem.num_groups());
  for (GroupId id = 0; id < problem.num_groups(); ++id) {
    labels[id] = static_cast<std::uint32_t>(group[members_.unit_of_group(id)]);
  }
  return group_as_labelled(problem, labels, groups_);
}

UnitGraph LearnedGrouping::likeliest() const {
  const torch::NoGradGuard no_gradients;
  return units_of(grouper_.logits().argmax(1));
}

UnitGraph LearnedGrouping::draw(Rng& rng) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor log_probs = torch::log_softmax(grouper_.logits(), 1);
  drawn_ = learn::draw(log_probs, uniforms({static_cast<std::int64_t>(members_.size())}, rng));
  return units_of(drawn_);
}

void LearnedGrouping::learn(double cost, TrainingPoint& point) {
  const double advantage = cost - baseline_.value(cost);
  baseline_.update(cost);
  const torch::Tensor logits = grouper_.logits();
  const torch::Tensor log_probs = torch::log_softmax(logits, 1);
  const torch::Tensor loss = advantage * log_prob_of(log_probs, drawn_).sum();
  optimizer_.step(parameters_, torch::autograd::grad({loss}, parameters_.tensors()));
  const torch::NoGradGuard no_gradients;
  const torch::Tensor changed = grouper_.logits().argmax(1) != logits.argmax(1);
  point.groups_changed = changed.to(torch::kFloat64).mean().item<double>();
  const torch::Tensor in_use = torch::bincount(drawn_) > 0;
  point.groups_used = static_cast<double>(in_use.sum().item<std::int64_t>());
}

void LearnedGrouping::save(StateWriter& state) const {
  for (const auto& [name, tensor] : parameters_.named()) state.put("policy." + name, tensor);
  baseline_.save(state);
  optimizer_.save(state, "grouper.optimizer");
}

void LearnedGrouping::load(const StateReader& state) {
  for (const auto& [name, tensor] : parameters_.named()) state.load("policy." + name, tensor);
  baseline_.load(state);
  optimizer_.load(state, "grouper.optimizer", parameters_.device());
}

}  // namespace emplace::learn
