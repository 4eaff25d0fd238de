#include "exec/pool_loops.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "exec/clones.h"

namespace emplace::exec::loops {
namespace {

// In a clone, for its processor.
#define EMPLACE_WITHIN inline __attribute__((always_inline))

using Axis = Plane::Axis;

struct Reach {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The windows whose element `at` lies in the image.
EMPLACE_WITHIN Reach windows_with(const Axis& axis, std::int64_t at) {
  const std::int64_t before = axis.begin - at;  // the first window's, and the image's begin
  const std::int64_t first = before <= 0 ? 0 : (before + axis.stride - 1) / axis.stride;
  const std::int64_t room = axis.extent - 1 + before;
  const std::int64_t last = room < 0 ? -1 : room / axis.stride;
  return {std::min(first, axis.count),
          std::max(std::min(first, axis.count), std::min(axis.count, last + 1))};
}

// Calls body with the stride as a constant, where it is a usual one.
template <class Body>
EMPLACE_WITHIN void with_stride(std::int64_t stride, const Body& body) {
  if (stride == 1) {
    body(std::integral_constant<std::int64_t, 1>{});
  } else if (stride == 2) {
    body(std::integral_constant<std::int64_t, 2>{});
  } else {
    body(stride);
  }
}

// Where in the image the first window's element is, which may lie beyond.
EMPLACE_WITHIN std::int64_t place_of(const Plane& plane, std::int64_t row, std::int64_t at_row,
                                     std::int64_t at_column) {
  return (row * plane.row.stride + at_row - plane.row.begin) * plane.column.extent + at_column -
         plane.column.begin;
}

EMPLACE_WITHIN bool row_has(const Plane& plane, std::int64_t row, std::int64_t at) {
  const std::int64_t place = row * plane.row.stride + at - plane.row.begin;
  return place >= 0 && place < plane.row.extent;
}

template <class Real>
EMPLACE_WITHIN void average_loop(const Plane& plane, const Real* x, const Real* counts, Real* y) {
  const std::int64_t count = plane.column.count;
  for (std::int64_t row = 0; row < plane.row.count; ++row, y += count, counts += count) {
    std::fill(y, y + count, Real{0});
    for (std::int64_t i = 0; i < plane.row.kernel; ++i) {
      if (!row_has(plane, row, i)) continue;
      for (std::int64_t j = 0; j < plane.column.kernel; ++j) {
        const Reach range = windows_with(plane.column, j);
        const std::int64_t from = place_of(plane, row, i, j);
        with_stride(
            plane.column.stride, [&](auto stride) __attribute__((always_inline)) {
              for (std::int64_t k = range.begin; k < range.end; ++k) y[k] += x[from + k * stride];
            });
      }
    }
    for (std::int64_t k = 0; k < count; ++k) y[k] /= counts[k];
  }
}

// An element gets shares of its windows in their order: the last of a window's elements are those
// of the windows that come first.
template <class Real>
EMPLACE_WITHIN void average_gradient_loop(const Plane& plane, const Real* dy, const Real* counts,
                                          Real* shares, Real* dx) {
  const std::int64_t count = plane.column.count;
  for (std::int64_t row = 0; row < plane.row.count; ++row, dy += count, counts += count) {
    for (std::int64_t k = 0; k < count; ++k) shares[k] = dy[k] / counts[k];
    for (std::int64_t i = 0; i < plane.row.kernel; ++i) {
      if (!row_has(plane, row, i)) continue;
      for (std::int64_t j = plane.column.kernel; j-- > 0;) {
        const Reach range = windows_with(plane.column, j);
        const std::int64_t to = place_of(plane, row, i, j);
        with_stride(
            plane.column.stride, [&](auto stride) __attribute__((always_inline)) {
              for (std::int64_t k = range.begin; k < range.end; ++k)
                dx[to + k * stride] += shares[k];
            });
      }
    }
  }
}

// The first element of a window that lies in the image.
EMPLACE_WITHIN std::int64_t first_of(const Axis& axis, std::int64_t window) {
  return std::max<std::int64_t>(0, axis.begin - window * axis.stride);
}

template <class Real>
EMPLACE_WITHIN void largest_loop(const Plane& plane, const Real* x, std::int32_t* row_which,
                                 Real* y, std::uint8_t* which) {
  const std::int64_t count = plane.column.count;
  for (std::int64_t row = 0; row < plane.row.count; ++row, y += count, which += count) {
    std::fill(y, y + count, -std::numeric_limits<Real>::infinity());
    const std::int64_t above = first_of(plane.row, row) * plane.column.kernel;
    for (std::int64_t k = 0; k < count; ++k) {
      row_which[k] = static_cast<std::int32_t>(above + first_of(plane.column, k));
    }
    for (std::int64_t i = 0; i < plane.row.kernel; ++i) {
      if (!row_has(plane, row, i)) continue;
      for (std::int64_t j = 0; j < plane.column.kernel; ++j) {
        const Reach range = windows_with(plane.column, j);
        const std::int64_t from = place_of(plane, row, i, j);
        const auto number = static_cast<std::int32_t>(i * plane.column.kernel + j);
        with_stride(
            plane.column.stride, [&](auto stride) __attribute__((always_inline)) {
              for (std::int64_t k = range.begin; k < range.end; ++k) {
                const Real value = x[from + k * stride];
                const bool taken = (value > y[k]) | (value != value);
                y[k] = taken ? value : y[k];
                row_which[k] = taken ? number : row_which[k];
              }
            });
      }
    }
    for (std::int64_t k = 0; k < count; ++k) which[k] = static_cast<std::uint8_t>(row_which[k]);
  }
}

template <class Real>
EMPLACE_WITHIN void largest_gradient_loop(const Plane& plane, const Real* dy,
                                          const std::uint8_t* which, Real* dx) {
  for (std::int64_t row = 0; row < plane.row.count; ++row) {
    for (std::int64_t k = 0; k < plane.column.count; ++k, ++dy, ++which) {
      const std::int64_t i = *which / plane.column.kernel;
      const std::int64_t j = *which % plane.column.kernel;
      dx[place_of(plane, row, i, j) + k * plane.column.stride] += *dy;
    }
  }
}

}  // namespace

EMPLACE_CLONES void average(const Plane& plane, const float* x, const float* counts, float* y) {
  average_loop(plane, x, counts, y);
}

EMPLACE_CLONES void average(const Plane& plane, const double* x, const double* counts, double* y) {
  average_loop(plane, x, counts, y);
}

EMPLACE_CLONES void average_gradient(const Plane& plane, const float* dy, const float* counts,
                                     float* shares, float* dx) {
  average_gradient_loop(plane, dy, counts, shares, dx);
}

EMPLACE_CLONES void average_gradient(const Plane& plane, const double* dy, const double* counts,
                                     double* shares, double* dx) {
  average_gradient_loop(plane, dy, counts, shares, dx);
}

EMPLACE_CLONES void largest(const Plane& plane, const float* x, std::int32_t* row, float* y,
                            std::uint8_t* which) {
  largest_loop(plane, x, row, y, which);
}

EMPLACE_CLONES void largest(const Plane& plane, const double* x, std::int32_t* row, double* y,
                            std::uint8_t* which) {
  largest_loop(plane, x, row, y, which);
}

void largest_gradient(const Plane& plane, const float* dy, const std::uint8_t* which, float* dx) {
  largest_gradient_loop(plane, dy, which, dx);
}

void largest_gradient(const Plane& plane, const double* dy, const std::uint8_t* which, double* dx) {
  largest_gradient_loop(plane, dy, which, dx);
}

}  // namespace emplace::exec::loops
