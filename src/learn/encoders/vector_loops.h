// Functions of floats for hand-written loops: arithmetic that compilers turn into vector
// instructions, which the standard library's functions prevent.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/simd.h"

namespace emplace::learn {

EMPLACE_ALWAYS_INLINE float smaller(float a, float b) {
  return a < b ? a : b;
}

// e^x to 2 units in the last place, for x within -87 .. 87; beyond, as there. 2^n times a
// polynomial on -ln 2 / 2 .. ln 2 / 2.
EMPLACE_ALWAYS_INLINE float quick_exp(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // few enough bits for exact products
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRounder = 12582912.0F;              // 1.5 * 2^23: the sum has no fraction
  x = std::copysign(smaller(std::fabs(x), 87.0F), x);  // two comparisons would become branches
  const float n = (x * kLog2E + kRounder) - kRounder;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float series = 1.0F / 5040.0F;
  series = series * r + 1.0F / 720.0F;
  series = series * r + 1.0F / 120.0F;
  series = series * r + 1.0F / 24.0F;
  series = series * r + 1.0F / 6.0F;
  series = series * r + 0.5F;
  series = series * r + 1.0F;
  series = series * r + 1.0F;
  const std::int32_t exponent = (static_cast<std::int32_t>(n) + 127) << 23;
  return series * std::bit_cast<float>(exponent);
}

EMPLACE_ALWAYS_INLINE float quick_sigmoid(float x) {
  return 1.0F / (1.0F + quick_exp(-x));
}
EMPLACE_ALWAYS_INLINE float quick_tanh(float x) {
  return 1.0F - 2.0F / (1.0F + quick_exp(2 * x));
}

}  // namespace emplace::learn
