// Pools of one image, compiled such that processors take several windows at a time
// (cmake/learn.cmake): libtorch's kernels for images that lie row by row take one element after the
// other. They are a twentieth of inception-v3's step faster on one core
// (docs/results/execution.md).
#pragma once

#include <cstdint>

namespace emplace::exec::loops {

// Windows over an image; each has an element of it or more.
struct Plane {
  struct Axis {
    std::int64_t extent = 1;  // of the image
    std::int64_t count = 1;   // of windows
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t begin = 0;  // how far the first window begins before the image
  };
  Axis row = {};
  Axis column = {};

  std::int64_t size() const { return row.extent * column.extent; }
  std::int64_t windows() const { return row.count * column.count; }
};

// Sums in the order of rows, and columns within them, as libtorch adds, by `counts`, of each
// window.
void average(const Plane& plane, const float* x, const float* counts, float* y);
void average(const Plane& plane, const double* x, const double* counts, double* y);
// `dx` begins at zero. `shares`: room for the numbers of a row of windows.
void average_gradient(const Plane& plane, const float* dy, const float* counts, float* shares,
                      float* dx);
void average_gradient(const Plane& plane, const double* dy, const double* counts, double* shares,
                      double* dx);

// The first of the largest elements, or the last that is no number, and which of its window it is:
// row by row, also those beyond the image. `row`: room for the numbers of a row of windows.
void largest(const Plane& plane, const float* x, std::int32_t* row, float* y, std::uint8_t* which);
void largest(const Plane& plane, const double* x, std::int32_t* row, double* y,
             std::uint8_t* which);
// `dx` begins at zero.
void largest_gradient(const Plane& plane, const float* dy, const std::uint8_t* which, float* dx);
void largest_gradient(const Plane& plane, const double* dy, const std::uint8_t* which, double* dx);

}  // namespace emplace::exec::loops
