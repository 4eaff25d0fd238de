// Floating numbers of 16 bits, as files hold them.
#pragma once

#include <cstdint>

namespace emplace {

// IEEE 754's binary16; numbers are rounded to nearest, ties to even.
std::int32_t half_bits(double value);
double half_of(std::uint16_t bits);

// The upper half of binary32, rounded in the same way.
std::int32_t bfloat_bits(double value);
double bfloat_of(std::uint16_t bits);

}  // namespace emplace
