#include "learn/encoders/graph_coordinates.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace emplace::learn {
namespace {

constexpr int kRounds = 300;
constexpr int kRoundsBetweenOrthogonalizations = 10;
// A transfer of so many bytes takes about as long as its latency.
constexpr double kLatencyBytes = 131072;
constexpr float kFurthest = 3;
// A column that is nearly spanned by those before it, by its length.
constexpr double kSpanned = 1e-4;

// The edges of a unit in both directions, with (D^-1/2 A D^-1/2 + 1) / 2 as their matrix: the lazy
// random walk in its symmetric form.
class Walk {
 public:
  explicit Walk(const UnitGraph& units) : inverse_root_(units.size()) {
    for (UnitId unit = 0; unit < units.size(); ++unit) {
      double degree = 0;
      const auto add = [&](std::span<const UnitId> others, std::span<const Bytes> bytes) {
        for (std::size_t i = 0; i < others.size(); ++i) {
          const double weight = 1 + static_cast<double>(bytes[i]) / kLatencyBytes;
          degree += weight;
          others_.push_back(others[i]);
          weights_.push_back(static_cast<float>(weight));
        }
      };
      add(units.predecessors(unit), units.predecessor_bytes(unit));
      add(units.successors(unit), units.successor_bytes(unit));
      ends_.push_back(others_.size());
      inverse_root_[unit] = static_cast<float>(degree > 0 ? 1 / std::sqrt(degree) : 1);
    }
    std::size_t edge = 0;
    for (std::size_t unit = 0; unit < ends_.size(); ++unit) {
      for (; edge < ends_[unit]; ++edge) {
        weights_[edge] *= 0.5F * inverse_root_[unit] * inverse_root_[others_[edge]];
      }
    }
  }

  float inverse_root(std::size_t unit) const { return inverse_root_[unit]; }

  // Row-major, as all matrices here.
  void step(std::int64_t columns, const std::vector<float>& from, std::vector<float>& to) const {
    std::size_t edge = 0;
    for (std::size_t unit = 0; unit < ends_.size(); ++unit) {
      const std::size_t at = unit * static_cast<std::size_t>(columns);
      float* __restrict row = to.data() + at;
      for (std::int64_t c = 0; c < columns; ++c)
        row[c] = 0.5F * from[at + static_cast<std::size_t>(c)];
      for (; edge < ends_[unit]; ++edge) {
        const float weight = weights_[edge];
        const float* __restrict other =
            from.data() + others_[edge] * static_cast<std::size_t>(columns);
        for (std::int64_t c = 0; c < columns; ++c) row[c] += weight * other[c];
      }
    }
  }

 private:
  std::vector<std::size_t> ends_;  // of each unit's edges
  std::vector<UnitId> others_;
  std::vector<float> weights_;
  std::vector<float> inverse_root_;
};

// Gram-Schmidt by way of the columns' products with each other (Cholesky QR), which reads the
// matrix twice, row by row. What is all but spanned by earlier columns becomes 0.
void orthogonalize(Matrix& matrix) {
  const auto columns = static_cast<std::size_t>(matrix.columns);
  std::vector<double> factor(columns * columns);  // R of Q R, from the upper half of X'X
  for (std::size_t at = 0; at < matrix.values.size(); at += columns) {
    const float* row = matrix.values.data() + at;
    for (std::size_t a = 0; a < columns; ++a) {
      double* __restrict sums = factor.data() + a * columns;
      for (std::size_t b = a; b < columns; ++b) sums[b] += static_cast<double>(row[a] * row[b]);
    }
  }
  std::vector<double> inverse(columns);  // of the diagonal
  for (std::size_t a = 0; a < columns; ++a) {
    double* own = factor.data() + a * columns;
    const double before = own[a];
    for (std::size_t e = 0; e < a; ++e) {
      const double* earlier = factor.data() + e * columns;
      for (std::size_t b = a; b < columns; ++b) own[b] -= earlier[a] * earlier[b];
    }
    inverse[a] = own[a] > kSpanned * kSpanned * before ? 1 / std::sqrt(own[a]) : 0;
    for (std::size_t b = a; b < columns; ++b) own[b] *= inverse[a];
  }
  for (std::size_t at = 0; at < matrix.values.size(); at += columns) {
    float* row = matrix.values.data() + at;
    for (std::size_t a = 0; a < columns; ++a) {
      row[a] = static_cast<float>(row[a] * inverse[a]);
      const double* own = factor.data() + a * columns;
      for (std::size_t b = a + 1; b < columns; ++b) row[b] -= static_cast<float>(row[a] * own[b]);
    }
  }
}

// The first column is the walk's fixed point, which says nothing; the others begin at random.
Matrix first_columns(const Walk& walk, std::int64_t rows, std::int64_t columns, Rng& rng) {
  Matrix result{.rows = rows, .columns = columns, .values = {}};
  result.values.resize(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    result.at(row, 0) = 1 / walk.inverse_root(static_cast<std::size_t>(row));
    for (std::int64_t c = 1; c < columns; ++c) {
      result.at(row, c) = static_cast<float>(rng.uniform() - 0.5);
    }
  }
  orthogonalize(result);
  return result;
}

}  // namespace

Matrix graph_coordinates(const UnitGraph& units, std::int64_t count, Rng& rng) {
  const Walk walk(units);
  Matrix columns = first_columns(walk, units.size(), count + 1, rng);
  std::vector<float> next(columns.values.size());
  for (int round = 1; round <= kRounds; ++round) {
    walk.step(columns.columns, columns.values, next);
    columns.values.swap(next);
    if (round % kRoundsBetweenOrthogonalizations == 0) orthogonalize(columns);
  }
  Matrix result{.rows = units.size(), .columns = count, .values = {}};
  result.values.resize(static_cast<std::size_t>(result.rows * count));
  for (std::int64_t c = 0; c < count; ++c) {
    double squares = 0;
    for (std::int64_t row = 0; row < result.rows; ++row) {
      // From the symmetric form back to the walk's own, whose eigenvectors are smooth.
      result.at(row, c) = columns.at(row, c + 1) * walk.inverse_root(static_cast<std::size_t>(row));
      squares += std::pow(static_cast<double>(result.at(row, c)), 2);
    }
    if (squares == 0) continue;
    const auto factor = static_cast<float>(std::sqrt(static_cast<double>(result.rows) / squares));
    for (std::int64_t row = 0; row < result.rows; ++row) {
      result.at(row, c) = std::clamp(factor * result.at(row, c), -kFurthest, kFurthest);
    }
  }
  return result;
}

}  // namespace emplace::learn
