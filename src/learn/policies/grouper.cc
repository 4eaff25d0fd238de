#include "learn/policies/grouper.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "learn/units/orders.h"
#include "learn/units/precedence.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kNeighbours = 6;  // in each direction, as in the paper
constexpr double kNever = -1e9;
// How fast, in logits per width of a slice, a group falls behind outside its slice.
constexpr double kSteepness = 60;
// At first, the odds that a unit well inside a slice is in it rather than anywhere else.
constexpr double kCertainty = 10'000;

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

Matrix place_feature(const UnitGraph& units, std::span<const UnitId> order) {
  Matrix result{units.size(), 1, std::vector<float>(units.size(), 0)};
  double total = 0;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    total += static_cast<double>(units.mean_duration(unit) + 1);
  }
  double before = 0;
  for (const UnitId unit : order) {
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
  const torch::Tensor features =
      to_tensor(unit_features(units, settings.features), parameters.device());
  types_ = features.narrow(1, 0, types).contiguous();
  const bool stages = settings.first_groups == FirstGroups::kStages;
  const std::vector<UnitId> order = stages ? precedence_of(units).order : locality_order(units);
  const torch::Tensor place = to_tensor(place_feature(units, order), parameters.device());
  std::vector<torch::Tensor> others{features.narrow(1, types, features.size(1) - types),
                                    to_tensor(neighbour_features(units), parameters.device())};
  if (settings.features == Features::kAll) others.push_back(place);
  other_ = torch::cat(others, 1);
  embeddings_ = parameters.glorot("grouper.types", types, settings.type_width, rng);
  hidden_ = Linear(parameters, "grouper.hidden", settings.type_width + other_.size(1),
                   std::max<std::int64_t>(2, settings.hidden), rng);
  output_ = Linear(parameters, "grouper.output", hidden_.bias.size(0), groups, rng);
  if (settings.first_groups == FirstGroups::kSlices || stages) begin_as_slices(place);
}

// The network's own part is 0 at first.
void Grouper::begin_as_slices(const torch::Tensor& place) {
  const torch::NoGradGuard no_gradients;
  const std::int64_t groups = output_.bias.size(0);
  const torch::Tensor middles = torch::arange(groups, place.options()) + 0.5;
  const torch::Tensor places = (place + 1) * (0.5 * static_cast<double>(groups));
  const torch::Tensor outside = torch::relu((places - middles).abs() - 0.5);
  lead_ = std::log(kCertainty * static_cast<double>(groups));
  slices_ = -torch::clamp_max(kSteepness * outside, lead_);
  torch::Tensor weight = output_.weight;
  weight.zero_();
}

torch::Tensor Grouper::inputs() const {
  return torch::cat({torch::matmul(types_, embeddings_), other_}, 1);
}

torch::Tensor Grouper::logits() const {
  if (fixed_.defined()) return fixed_;
  const torch::Tensor logits = output_(torch::relu(hidden_(inputs())));
  const torch::Tensor shaped = torch::tanh(logits / settings_.temperature);
  if (slices_.defined()) return slices_ + lead_ * shaped;
  return settings_.tanh_constant * shaped;
}

}  // namespace emplace::learn
