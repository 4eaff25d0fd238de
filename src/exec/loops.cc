#include "exec/loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

// Compiled for newer processors as well. Sanitizers do not bear how the code is chosen.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EMPLACE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define EMPLACE_CLONES
#endif

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

// The positions of a window that lie within the input.
struct Inside {
  std::int64_t first, last;  // taps
  std::int64_t start;        // of tap 0
};

inline Inside inside(const Windows& at, std::int64_t window) {
  const std::int64_t start = window * at.stride - at.before;
  const std::int64_t first = start >= 0 ? 0 : (-start + at.dilation - 1) / at.dilation;
  const std::int64_t room = at.in - 1 - start;
  const std::int64_t last = room < 0 ? 0 : std::min(at.kernel, room / at.dilation + 1);
  return {first, last, start};
}

// For each tap, the windows that have an element there: windows [begin, end), the first at `place`.
struct Tapped {
  std::int64_t begin, end, place;
};

inline Tapped tapped(const Windows& at, std::int64_t tap) {
  const std::int64_t offset = tap * at.dilation - at.before;
  const std::int64_t begin = offset >= 0 ? 0 : (-offset + at.stride - 1) / at.stride;
  const std::int64_t room = at.in - 1 - offset;
  const std::int64_t end = room < 0 ? begin : std::min(at.out, room / at.stride + 1);
  return {begin, std::max(begin, end), begin * at.stride + offset};
}

template <class Real>
inline Real larger(Real known, Real value) {
  return value > known || value != value ? value : known;
}

template <class Real>
inline void take_larger(const Real* values, std::int64_t count, Real* known) {
  for (std::int64_t i = 0; i < count; ++i) known[i] = larger(known[i], values[i]);
}

template <class Real>
inline void take_larger(const Real* values, std::int64_t stride, std::int64_t count, Real* known) {
  if (stride == 1) return take_larger(values, count, known);
  for (std::int64_t i = 0; i < count; ++i) known[i] = larger(known[i], values[i * stride]);
}

// First over the rows of a window, then over its columns.
template <class Real>
inline void max_pool_loop(const PlaneWindows& at, const Real* x, Real* buffer, Real* y) {
  constexpr Real kLeast = -std::numeric_limits<Real>::infinity();
  for (std::int64_t i = 0; i < at.rows.out; ++i, y += at.columns.out) {
    const Inside rows = inside(at.rows, i);
    std::fill(buffer, buffer + at.columns.in, kLeast);
    for (std::int64_t tap = rows.first; tap < rows.last; ++tap) {
      take_larger(x + (rows.start + tap * at.rows.dilation) * at.columns.in, at.columns.in, buffer);
    }
    std::fill(y, y + at.columns.out, kLeast);
    for (std::int64_t tap = 0; tap < at.columns.kernel; ++tap) {
      const Tapped columns = tapped(at.columns, tap);
      take_larger(buffer + columns.place, at.columns.stride, columns.end - columns.begin,
                  y + columns.begin);
    }
  }
}

// A tap of all windows of a row at a time, without branches; `left` is what is still to be given.
template <class Real>
inline void max_pool_gradient_loop(const PlaneWindows& at, const Real* x, const Real* y,
                                   const Real* dy, Real* left, Real* dx) {
  const std::int64_t stride = at.columns.stride;
  for (std::int64_t i = 0; i < at.rows.out; ++i, y += at.columns.out, dy += at.columns.out) {
    const Inside rows = inside(at.rows, i);
    std::copy(dy, dy + at.columns.out, left);
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      const std::int64_t row = (rows.start + r * at.rows.dilation) * at.columns.in;
      for (std::int64_t tap = 0; tap < at.columns.kernel; ++tap) {
        const Tapped columns = tapped(at.columns, tap);
        const Real* values = x + row + columns.place;
        Real* into = dx + row + columns.place;
        const Real* largest = y + columns.begin;
        Real* rest = left + columns.begin;
        const std::int64_t count = columns.end - columns.begin;
        for (std::int64_t j = 0; j < count; ++j) {
          const Real value = values[j * stride];
          const bool found = value == largest[j] || value != value;
          into[j * stride] += found ? rest[j] : Real{0};
          rest[j] = found ? Real{0} : rest[j];
        }
      }
    }
  }
}

template <class Real>
inline void add_to(const Real* values, std::int64_t count, Real* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += values[i];
}

template <class Real>
inline void average_pool_loop(const PlaneWindows& at, const Real* x, const Real* row_counts,
                              const Real* column_counts, Real* buffer, Real* y) {
  for (std::int64_t i = 0; i < at.rows.out; ++i, y += at.columns.out) {
    const Inside rows = inside(at.rows, i);
    std::fill(buffer, buffer + at.columns.in, Real{0});
    for (std::int64_t tap = rows.first; tap < rows.last; ++tap) {
      add_to(x + (rows.start + tap) * at.columns.in, at.columns.in, buffer);
    }
    std::fill(y, y + at.columns.out, Real{0});
    for (std::int64_t tap = 0; tap < at.columns.kernel; ++tap) {
      const Tapped columns = tapped(at.columns, tap);
      const std::int64_t count = columns.end - columns.begin;
      if (at.columns.stride == 1) {
        add_to(buffer + columns.place, count, y + columns.begin);
        continue;
      }
      for (std::int64_t j = 0; j < count; ++j) {
        y[columns.begin + j] += buffer[columns.place + j * at.columns.stride];
      }
    }
    for (std::int64_t j = 0; j < at.columns.out; ++j) y[j] /= row_counts[i] * column_counts[j];
  }
}

template <class Real>
inline void average_pool_gradient_loop(const PlaneWindows& at, const Real* dy,
                                       const Real* row_counts, const Real* column_counts,
                                       Real* buffer, Real* dx) {
  for (std::int64_t i = 0; i < at.rows.out; ++i, dy += at.columns.out) {
    std::fill(buffer, buffer + at.columns.in, Real{0});
    for (std::int64_t tap = 0; tap < at.columns.kernel; ++tap) {
      const Tapped columns = tapped(at.columns, tap);
      const Real* shared = dy + columns.begin;
      const Real* counts = column_counts + columns.begin;
      Real* into = buffer + columns.place;
      const std::int64_t count = columns.end - columns.begin;
      for (std::int64_t j = 0; j < count; ++j) {
        into[j * at.columns.stride] += shared[j] / (row_counts[i] * counts[j]);
      }
    }
    const Inside rows = inside(at.rows, i);
    for (std::int64_t tap = rows.first; tap < rows.last; ++tap) {
      add_to(buffer, at.columns.in, dx + (rows.start + tap) * at.columns.in);
    }
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

EMPLACE_CLONES void max_pool(const PlaneWindows& at, const float* x, float* buffer, float* y) {
  max_pool_loop(at, x, buffer, y);
}

EMPLACE_CLONES void max_pool_gradient(const PlaneWindows& at, const float* x, const float* y,
                                      const float* dy, float* left, float* dx) {
  max_pool_gradient_loop(at, x, y, dy, left, dx);
}

EMPLACE_CLONES void average_pool(const PlaneWindows& at, const float* x, const float* row_counts,
                                 const float* column_counts, float* buffer, float* y) {
  average_pool_loop(at, x, row_counts, column_counts, buffer, y);
}

EMPLACE_CLONES void average_pool_gradient(const PlaneWindows& at, const float* dy,
                                          const float* row_counts, const float* column_counts,
                                          float* buffer, float* dx) {
  average_pool_gradient_loop(at, dy, row_counts, column_counts, buffer, dx);
}

EMPLACE_CLONES void max_pool(const PlaneWindows& at, const double* x, double* buffer, double* y) {
  max_pool_loop(at, x, buffer, y);
}

EMPLACE_CLONES void max_pool_gradient(const PlaneWindows& at, const double* x, const double* y,
                                      const double* dy, double* left, double* dx) {
  max_pool_gradient_loop(at, x, y, dy, left, dx);
}

EMPLACE_CLONES void average_pool(const PlaneWindows& at, const double* x, const double* row_counts,
                                 const double* column_counts, double* buffer, double* y) {
  average_pool_loop(at, x, row_counts, column_counts, buffer, y);
}

EMPLACE_CLONES void average_pool_gradient(const PlaneWindows& at, const double* dy,
                                          const double* row_counts, const double* column_counts,
                                          double* buffer, double* dx) {
  average_pool_gradient_loop(at, dy, row_counts, column_counts, buffer, dx);
}

}  // namespace emplace::exec::loops
