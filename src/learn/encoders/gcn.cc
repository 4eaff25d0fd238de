#include "learn/encoders/gcn.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace emplace::learn {
namespace {

constexpr double kFirstSlope = 0.25;  // PReLU's (He et al. 2015)

// The unit itself and its neighbours in either direction, ascending.
std::vector<UnitId> heard_of(const UnitGraph& units, UnitId unit) {
  const std::span<const UnitId> before = units.predecessors(unit);
  const std::span<const UnitId> after = units.successors(unit);
  std::vector<UnitId> result;
  std::set_union(before.begin(), before.end(), after.begin(), after.end(),
                 std::back_inserter(result));
  result.insert(std::lower_bound(result.begin(), result.end(), unit), unit);
  return result;
}

}  // namespace

Neighbours normalized_adjacency(const UnitGraph& units, torch::Device device) {
  Csr<std::uint32_t> lists;
  for (UnitId unit = 0; unit < units.size(); ++unit) lists.push_back(heard_of(units, unit));
  std::vector<float> weights;
  weights.reserve(lists.total());
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    for (const std::uint32_t other : lists[unit]) {
      const auto degrees = static_cast<double>(lists[unit].size() * lists[other].size());
      weights.push_back(static_cast<float>(1 / std::sqrt(degrees)));
    }
  }
  return Neighbours(lists, weights, device);
}

Gcn::Gcn(Parameters& parameters, const std::string& name, std::int64_t input_width,
         const GcnSettings& settings, Rng& rng) {
  for (std::int64_t i = 0; i < settings.layers; ++i) {
    const std::string layer = name + "." + std::to_string(i);
    const std::int64_t in = i == 0 ? input_width : settings.width;
    layers_.push_back({Linear(parameters, layer, in, settings.width, rng),
                       parameters.constant(layer + ".slope", {1}, kFirstSlope)});
  }
}

torch::Tensor Gcn::operator()(const Neighbours& adjacency, const torch::Tensor& x) const {
  return from_mixed(adjacency, adjacency.sum(x));
}

torch::Tensor Gcn::from_mixed(const Neighbours& adjacency, const torch::Tensor& mixed) const {
  torch::Tensor h = mixed;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) h = adjacency.sum(h);
    h = torch::prelu(layers_[i].dense(h), layers_[i].slope);
  }
  return h;
}

}  // namespace emplace::learn
