// Loops over plain arrays of numbers, compiled such that processors take several elements at a time
// (cmake/learn.cmake). Everything else about tensors is libtorch's.
#pragma once

#include <cstdint>

namespace emplace::exec::loops {

// ---- random.h: which elements are kept, by a hash of 32 bits of their numbers

struct Key {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

inline constexpr std::uint32_t kNumberFactor = 0x9E3779B1U;
inline constexpr std::uint32_t kUpperFactor = 0x85EBCA6BU;
inline constexpr std::uint32_t kLowerFactor = 0xC2B2AE35U;

// Elements number `first` and on: those whose 31 bits are not below the limit.
void draw(Key key, std::uint32_t first, std::int64_t count, std::uint32_t limit, bool* kept);
// x scaled where it is kept, else zero.
void mask(const float* x, const bool* kept, double scale, std::int64_t count, float* result);
void mask(const double* x, const bool* kept, double scale, std::int64_t count, double* result);

// ---- native_updates.cc: steps of optimizers

struct Momentum {
  double rate = 0.01;
  double decay = 0.9;
};

struct Adam {
  double rate = 1e-3;
  double first = 0.9;
  double second = 0.999;
  double epsilon = 1e-8;
};

void momentum(const Momentum& rule, float* weight, const float* gradient, float* sum,
              std::int64_t count);
void momentum(const Momentum& rule, double* weight, const double* gradient, double* sum,
              std::int64_t count);
// The step of this number, which counts from one.
void adam(const Adam& rule, std::int64_t number, float* weight, const float* gradient, float* mean,
          float* square, std::int64_t count);
void adam(const Adam& rule, std::int64_t number, double* weight, const double* gradient,
          double* mean, double* square, std::int64_t count);

// ---- native_pools.cc: windows over a plane, the rows of which lie one after the other

// Along one axis; windows may begin before the input and reach beyond it.
struct Windows {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t before = 0;  // where the first begins, counted backwards from the input
};

struct PlaneWindows {
  Windows rows, columns;
};

// `buffer` is for a row of the input. What is not a number is the largest.
void max_pool(const PlaneWindows& at, const float* x, float* buffer, float* y);
void max_pool(const PlaneWindows& at, const double* x, double* buffer, double* y);
// Each dy is added to the first of the largest elements of its window, dx is zero before. `left` is
// for a row of dy.
void max_pool_gradient(const PlaneWindows& at, const float* x, const float* y, const float* dy,
                       float* left, float* dx);
void max_pool_gradient(const PlaneWindows& at, const double* x, const double* y, const double* dy,
                       double* left, double* dx);
// Sums, each divided by the product of its row's and its column's count. Dilations are one.
void average_pool(const PlaneWindows& at, const float* x, const float* row_counts,
                  const float* column_counts, float* buffer, float* y);
void average_pool(const PlaneWindows& at, const double* x, const double* row_counts,
                  const double* column_counts, double* buffer, double* y);
// dx is zero before.
void average_pool_gradient(const PlaneWindows& at, const float* dy, const float* row_counts,
                           const float* column_counts, float* buffer, float* dx);
void average_pool_gradient(const PlaneWindows& at, const double* dy, const double* row_counts,
                           const double* column_counts, double* buffer, double* dx);

}  // namespace emplace::exec::loops
