#include "learn/general/leanings.h"

#include <algorithm>
#include <tuple>

namespace emplace::learn {
namespace {

// At first a unit's score falls by 4 for every slice's width that a device's is away
// (learn/nn/device_scores.h), so that this moves the edge of a slice by at most that width.
constexpr double kFurthestLeaning = 4;

}  // namespace

torch::Tensor leanings(std::int64_t count, std::int64_t devices, Rng& rng) {
  torch::Tensor result = torch::zeros({count, devices}, torch::kFloat32);
  float* at = result.data_ptr<float>();
  for (std::int64_t row = 0; row < count; ++row) {
    const double reach = kFurthestLeaning * static_cast<double>(row) / static_cast<double>(count);
    for (std::int64_t device = 0; device < devices; ++device) {
      *at++ = row == 0 ? 0 : static_cast<float>(reach * (2 * rng.uniform() - 1));
    }
  }
  return result;
}

std::vector<Placement> first_and_best(std::vector<Placement> placements,
                                      const std::vector<SampleOutcome>& outcomes) {
  std::size_t best = 0;
  const auto rank = [&](std::size_t i) {
    return std::tuple(!outcomes[i].valid, outcomes[i].overflow, outcomes[i].step);
  };
  for (std::size_t i = 1; i < placements.size(); ++i) {
    if (rank(i) < rank(best)) best = i;
  }
  std::vector<Placement> result{std::move(placements.front())};
  if (best > 0) result.push_back(std::move(placements[best]));
  return result;
}

}  // namespace emplace::learn
