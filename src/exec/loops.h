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

}  // namespace emplace::exec::loops
