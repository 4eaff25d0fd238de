// Exact decimal numbers, for the quantities that people write as "41.2" and that must not pass
// through binary floating point on their way to integer nanoseconds (a time, a slowdown, a size).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace emplace {

// mantissa * 10^exponent; at most 18 significant digits.
struct Decimal {
  std::int64_t mantissa = 0;
  std::int32_t exponent = 0;

  // Reads JSON's number syntax ("3", "-0.5", "1.5e-3"; a leading "+" or "." is allowed too).
  // Nothing when the text is not a number or has more than 18 significant digits.
  static std::optional<Decimal> parse(std::string_view text);

  // The decimal nearest to `value` with `digits` digits after the point.
  static Decimal from_double(double value, int digits);

  bool negative() const { return mantissa < 0; }
  double to_double() const;
  std::string to_string() const;

  friend bool operator==(const Decimal& a, const Decimal& b) = default;
};

// floor(a * b * scale + 1/2), exactly; nothing when it does not fit in 63 bits. All must be >= 0.
std::optional<std::int64_t> round_half_up(const Decimal& a, const Decimal& b, std::int64_t scale);
inline std::optional<std::int64_t> round_half_up(const Decimal& a, std::int64_t scale) {
  return round_half_up(a, Decimal{1, 0}, scale);
}

}  // namespace emplace
