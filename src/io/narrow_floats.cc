#include "io/narrow_floats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace emplace {

std::int32_t half_bits(double value) {
  constexpr int kMantissaBits = 10;
  constexpr int kBias = 15;
  constexpr int kInfinity = 0x7C00;
  constexpr double kTooLarge = 65520;  // rounds to beyond the largest, 65504
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (std::isnan(value)) return sign | kInfinity | 1;
  if (size >= kTooLarge) return sign | kInfinity;
  if (size == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // in [1/2, 1)
  if (exponent < 2 - kBias) {
    // Subnormal; one that is rounded up to the least normal number has just its bits.
    return sign | static_cast<int>(std::nearbyint(std::ldexp(size, kMantissaBits + kBias - 1)));
  }
  const int mantissa = static_cast<int>(std::nearbyint(std::ldexp(fraction, kMantissaBits + 1)));
  return sign | (((exponent + kBias - 2) << kMantissaBits) + mantissa);
}

std::int32_t bfloat_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return static_cast<std::int32_t>((bits >> 16) | 1);
  return static_cast<std::int32_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// A sign, 5 bits of exponent, 10 of mantissa.
double half_of(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  double size = std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 0) size = std::ldexp(mantissa, -24);
  if (exponent == 31) {
    size = mantissa == 0 ? std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

double bfloat_of(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
}

}  // namespace emplace
