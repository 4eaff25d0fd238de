#include "exec/loops.h"

#include <cmath>

#include "exec/clones.h"

namespace emplace::exec::loops {
namespace {

template <class Real>
inline void momentum_loop(const Momentum& rule, Real* weight, const Real* gradient, Real* sum,
                          std::int64_t count) {
  const auto rate = static_cast<Real>(rule.rate);
  const auto decay = static_cast<Real>(rule.decay);
  for (std::int64_t i = 0; i < count; ++i) {
    sum[i] = decay * sum[i] + gradient[i];
    weight[i] -= rate * sum[i];
  }
}

// Moments begin at zero, which is corrected for.
template <class Real>
inline void adam_loop(const Adam& rule, std::int64_t number, Real* weight, const Real* gradient,
                      Real* mean, Real* square, std::int64_t count) {
  const auto times = static_cast<double>(number);
  const auto rate = static_cast<Real>(rule.rate / (1 - std::pow(rule.first, times)));
  const auto scale = static_cast<Real>(1 / std::sqrt(1 - std::pow(rule.second, times)));
  const auto new_mean = static_cast<Real>(1 - rule.first);
  const auto new_square = static_cast<Real>(1 - rule.second);
  const auto epsilon = static_cast<Real>(rule.epsilon);
  for (std::int64_t i = 0; i < count; ++i) {
    const Real g = gradient[i];
    mean[i] += (g - mean[i]) * new_mean;
    square[i] += (g * g - square[i]) * new_square;
    weight[i] -= rate * mean[i] / (std::sqrt(square[i]) * scale + epsilon);
  }
}

}  // namespace

EMPLACE_CLONES void draw(Key key, std::uint32_t first, std::int64_t count, std::uint32_t limit,
                         bool* kept) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t z = ((first + static_cast<std::uint32_t>(i)) * kNumberFactor) ^ key.first;
    z = ((z ^ (z >> 16)) * kUpperFactor) ^ key.second;
    z = (z ^ (z >> 13)) * kLowerFactor;
    kept[i] = (z >> 1) >= limit;
  }
}

EMPLACE_CLONES void mask(const float* x, const bool* kept, double scale, std::int64_t count,
                         float* result) {
  const auto factor = static_cast<float>(scale);
  const auto* flags = reinterpret_cast<const unsigned char*>(kept);
  for (std::int64_t i = 0; i < count; ++i) result[i] = flags[i] != 0 ? x[i] * factor : 0.0F;
}

EMPLACE_CLONES void mask(const double* x, const bool* kept, double scale, std::int64_t count,
                         double* result) {
  const auto* flags = reinterpret_cast<const unsigned char*>(kept);
  for (std::int64_t i = 0; i < count; ++i) result[i] = flags[i] != 0 ? x[i] * scale : 0.0;
}

EMPLACE_CLONES void momentum(const Momentum& rule, float* weight, const float* gradient, float* sum,
                             std::int64_t count) {
  momentum_loop(rule, weight, gradient, sum, count);
}

EMPLACE_CLONES void momentum(const Momentum& rule, double* weight, const double* gradient,
                             double* sum, std::int64_t count) {
  momentum_loop(rule, weight, gradient, sum, count);
}

EMPLACE_CLONES void adam(const Adam& rule, std::int64_t number, float* weight,
                         const float* gradient, float* mean, float* square, std::int64_t count) {
  adam_loop(rule, number, weight, gradient, mean, square, count);
}

EMPLACE_CLONES void adam(const Adam& rule, std::int64_t number, double* weight,
                         const double* gradient, double* mean, double* square, std::int64_t count) {
  adam_loop(rule, number, weight, gradient, mean, square, count);
}

}  // namespace emplace::exec::loops
