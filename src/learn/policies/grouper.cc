#include "learn/policies/grouper.h"

#include <algorithm>

#include "learn/units/orders.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kNeighbours = 6;  // in each direction, as in the paper
constexpr double kNever = -1e9;
// How far, in logits, a group is ahead of its neighbours in the middle of its slice at first.
constexpr double kLead = 30;

torch::Tensor drawn_groups(const UnitGraph& units, std::int64_t groups, torch::Device device,
                           Rng& rng) {
  std::vector<std::int64_t> group_of_unit(units.size());
  for (std::int64_t& group : group_of_unit) {
    group = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(groups)));
  }
  const torch::Tensor chosen = to_tensor(group_of_unit, device).unsqueeze(1);
  const auto rows = static_cast<std::int64_t>(units.size());
  return torch::full({rows, groups}, kNever, torch::kFloat32).to(device).scatter_(1, chosen, 0.0);
}

}  // namespace

Matrix neighbour_features(const UnitGraph& units) {
  const std::int64_t columns = 2 * kNeighbours;
  const auto rows = static_cast<std::int64_t>(units.size());
  Matrix result{rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns), 0)};
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    const std::span<const UnitId> before = units.predecessors(unit);
    const std::span<const UnitId> after = units.successors(unit);
    const auto place = [&](UnitId other) {
      return static_cast<float>(other + 1) / static_cast<float>(rows);
    };
    for (std::size_t i = 0; i < std::min<std::size_t>(before.size(), kNeighbours); ++i) {
      result.at(unit, static_cast<std::int64_t>(i)) = place(before[before.size() - 1 - i]);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(after.size(), kNeighbours); ++i) {
      result.at(unit, kNeighbours + static_cast<std::int64_t>(i)) = place(after[i]);
    }
  }
  return result;
}

Matrix locality_feature(const UnitGraph& units) {
  Matrix result{units.size(), 1, std::vector<float>(units.size(), 0)};
  double total = 0;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    total += static_cast<double>(units.mean_duration(unit) + 1);
  }
  double before = 0;
  for (const UnitId unit : locality_order(units)) {
    const auto time = static_cast<double>(units.mean_duration(unit) + 1);
    result.at(unit, 0) = static_cast<float>(2 * (before + time / 2) / total - 1);
    before += time;
  }
  return result;
}

Grouper::Grouper(Parameters& parameters, const UnitGraph& units, std::int64_t groups,
                 const GrouperPlacerSettings& settings, Rng& rng)
    : settings_(settings) {
  if (settings.first_groups == FirstGroups::kDrawn) {
    fixed_ = drawn_groups(units, groups, parameters.device(), rng);
    return;
  }
  const std::int64_t types = number_types(units.problem().graph()).count;
  const torch::Tensor features = to_tensor(unit_features(units), parameters.device());
  types_ = features.narrow(1, 0, types).contiguous();
  other_ = torch::cat({to_tensor(locality_feature(units), parameters.device()),
                       features.narrow(1, types, features.size(1) - types),
                       to_tensor(neighbour_features(units), parameters.device())},
                      1);
  embeddings_ = parameters.glorot("grouper.types", types, settings.type_width, rng);
  hidden_ = Linear(parameters, "grouper.hidden", settings.type_width + other_.size(1),
                   std::max<std::int64_t>(2, settings.hidden), rng);
  output_ = Linear(parameters, "grouper.output", hidden_.bias.size(0), groups, rng);
  if (settings.first_groups == FirstGroups::kSlices) begin_as_slices(settings.type_width);
}

// The place in the order is x = relu(x) - relu(-x), by two hidden units; the logit of group g,
// whose slice has its middle at m, is -a (x - m)^2 but for what all groups have in common.
void Grouper::begin_as_slices(std::int64_t column) {
  const torch::NoGradGuard no_gradients;
  const std::int64_t groups = output_.bias.size(0);
  torch::Tensor hidden_weight = hidden_.weight;
  torch::Tensor weight = output_.weight;
  torch::Tensor bias = output_.bias;
  hidden_weight.narrow(1, 0, 2).zero_();
  hidden_weight[column][0] = 1;
  hidden_weight[column][1] = -1;
  const double width = 2.0 / static_cast<double>(groups);
  const double steepness = kLead / (width * width);
  const torch::Tensor middles =
      (torch::arange(groups, bias.options().requires_grad(false)) + 0.5) * width - 1;
  weight[0].copy_(2 * steepness * middles);
  weight[1].copy_(-2 * steepness * middles);
  bias.copy_(-steepness * middles.square());
}

torch::Tensor Grouper::inputs() const {
  return torch::cat({torch::matmul(types_, embeddings_), other_}, 1);
}

torch::Tensor Grouper::logits() const {
  if (fixed_.defined()) return fixed_;
  const torch::Tensor logits = output_(torch::relu(hidden_(inputs())));
  if (!bounded()) return logits;
  return settings_.tanh_constant * torch::tanh(logits / settings_.temperature);
}

}  // namespace emplace::learn
