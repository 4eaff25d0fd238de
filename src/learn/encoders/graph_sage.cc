#include "learn/encoders/graph_sage.h"

#include <algorithm>
#include <iterator>

namespace emplace::learn {

Csr<std::uint32_t> both_directions(const UnitGraph& units) {
  Csr<std::uint32_t> result;
  result.reserve(units.size(), units.all_predecessors().total() + units.all_successors().total());
  std::vector<std::uint32_t> both;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    const std::span<const UnitId> before = units.predecessors(unit);
    const std::span<const UnitId> after = units.successors(unit);
    both.clear();
    std::set_union(before.begin(), before.end(), after.begin(), after.end(),
                   std::back_inserter(both));
    result.push_back(both);
  }
  return result;
}

GraphSage::GraphSage(Parameters& parameters, const std::string& name,
                     const Csr<std::uint32_t>& neighbours, std::int64_t input_width,
                     std::int64_t width, std::int64_t layers, Rng& rng)
    : neighbours_(neighbours, {}, parameters.device()) {
  std::int64_t in = input_width;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string prefix = name + "." + std::to_string(i);
    layers_.push_back({Linear(parameters, prefix + ".said", in, width, rng),
                       Linear(parameters, prefix + ".own", in, width, rng),
                       Linear(parameters, prefix + ".pooled", width, width, rng, false)});
    in = width;
  }
}

torch::Tensor GraphSage::operator()(const torch::Tensor& x) const {
  torch::Tensor h = x;
  for (const Layer& layer : layers_) {
    const torch::Tensor pooled = neighbours_.max(torch::sigmoid(layer.said(h)));
    h = torch::relu(layer.own(h) + layer.pooled(pooled));
  }
  return h;
}

}  // namespace emplace::learn
