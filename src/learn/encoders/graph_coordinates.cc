#include "learn/encoders/graph_coordinates.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "learn/encoders/neighbours.h"
#include "learn/nn/module.h"

namespace emplace::learn {
namespace {

constexpr int kRounds = 300;
constexpr int kRoundsBetweenOrthogonalizations = 10;
// A transfer of so many bytes takes about as long as its latency.
constexpr double kLatencyBytes = 131072;
constexpr double kFurthest = 3;

// The edges of a unit in both directions, with (D^-1/2 A D^-1/2 + 1) / 2 as their matrix: the lazy
// random walk in its symmetric form.
class Walk {
 public:
  explicit Walk(const UnitGraph& units) : Walk(edges_of(units)) {}

  const torch::Tensor& inverse_root() const { return inverse_root_; }  // D^-1/2 [units, 1]
  torch::Tensor step(const torch::Tensor& x) const { return edges_.sum(x).add_(x, 0.5); }

 private:
  struct Edges {
    Csr<std::uint32_t> others;
    std::vector<float> weights;
    std::vector<float> inverse_root;
  };

  explicit Walk(const Edges& edges)
      : inverse_root_(torch::tensor(edges.inverse_root).unsqueeze(1)),
        edges_(edges.others, edges.weights, torch::kCPU) {}

  static Edges edges_of(const UnitGraph& units) {
    Edges result;
    for (UnitId unit = 0; unit < units.size(); ++unit) {
      std::vector<std::uint32_t> others;
      double degree = 0;
      const auto add = [&](std::span<const UnitId> ends, std::span<const Bytes> bytes) {
        for (std::size_t i = 0; i < ends.size(); ++i) {
          const double weight = 1 + static_cast<double>(bytes[i]) / kLatencyBytes;
          degree += weight;
          others.push_back(ends[i]);
          result.weights.push_back(static_cast<float>(weight));
        }
      };
      add(units.predecessors(unit), units.predecessor_bytes(unit));
      add(units.successors(unit), units.successor_bytes(unit));
      result.others.push_back(others);
      result.inverse_root.push_back(static_cast<float>(degree > 0 ? 1 / std::sqrt(degree) : 1));
    }
    std::size_t edge = 0;
    for (UnitId unit = 0; unit < units.size(); ++unit) {
      for (const std::uint32_t other : result.others[unit]) {
        result.weights[edge++] *= 0.5F * result.inverse_root[unit] * result.inverse_root[other];
      }
    }
    return result;
  }

  torch::Tensor inverse_root_;
  Neighbours edges_;
};

torch::Tensor orthogonalized(const torch::Tensor& columns) {
  return std::get<0>(torch::linalg_qr(columns));
}

}  // namespace

torch::Tensor graph_coordinates(const UnitGraph& units, std::int64_t count, Rng& rng) {
  const torch::NoGradGuard no_gradients;
  const Walk walk(units);
  const std::int64_t rows = units.size();
  // The first column is the walk's fixed point, which says nothing; the others begin at random.
  const torch::Tensor begin =
      torch::cat({1 / walk.inverse_root(), uniforms({rows, count}, rng) - 0.5}, 1);
  torch::Tensor columns = orthogonalized(begin.narrow(1, 0, std::min(count + 1, rows)));
  for (int round = 1; round <= kRounds; ++round) {
    columns = walk.step(columns);
    if (round % kRoundsBetweenOrthogonalizations == 0) columns = orthogonalized(columns);
  }
  // From the symmetric form back to the walk's own, whose eigenvectors are smooth.
  const torch::Tensor smooth = columns.slice(1, 1) * walk.inverse_root();
  const torch::Tensor scale = smooth.square().mean(0).sqrt().clamp_min(1e-30);
  const torch::Tensor found = (smooth / scale).clamp(-kFurthest, kFurthest);
  return torch::constant_pad_nd(found, {0, count - found.size(1)});
}

}  // namespace emplace::learn
