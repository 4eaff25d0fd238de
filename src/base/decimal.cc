#include "base/decimal.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"
#include "base/wide.h"

namespace emplace {
namespace {

constexpr int kMaxDigits = 18;
constexpr std::int64_t kMaxResult = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Digits collected while a number is read. Zeros are held back until a later digit needs them, so
// that "1000000000000000000000" is 1 with an exponent, not 22 digits.
struct Digits {
  std::int64_t mantissa = 0;
  int significant = 0;
  int pending_zeros = 0;
  bool overflow = false;

  void add(int digit) {
    if (digit == 0) {
      if (significant > 0) ++pending_zeros;
      return;
    }
    significant += pending_zeros + 1;
    if (significant > kMaxDigits) {
      overflow = true;
      return;
    }
    for (; pending_zeros > 0; --pending_zeros) mantissa *= 10;
    mantissa = mantissa * 10 + digit;
  }
};

std::optional<int> parse_exponent(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty() || text.size() > 6) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return negative ? -value : value;
}

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  Digits digits;
  int after_point = 0;
  bool seen_point = false;
  bool seen_digit = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !seen_point) {
      seen_point = true;
    } else if (is_digit(text[i])) {
      seen_digit = true;
      digits.add(text[i] - '0');
      if (seen_point) ++after_point;
    } else {
      break;
    }
  }
  if (!seen_digit || digits.overflow) return std::nullopt;
  int exponent = 0;
  if (i < text.size()) {
    if (text[i] != 'e' && text[i] != 'E') return std::nullopt;
    const auto parsed = parse_exponent(text.substr(i + 1));
    if (!parsed) return std::nullopt;
    exponent = *parsed;
  }
  if (digits.mantissa == 0) return Decimal{};
  return Decimal{negative ? -digits.mantissa : digits.mantissa,
                 exponent - after_point + digits.pending_zeros};
}

Decimal Decimal::from_double(double value, int digits) {
  const double scaled = std::round(value * std::pow(10.0, digits));
  EMPLACE_CHECK(std::abs(scaled) < 9e18);
  return {static_cast<std::int64_t>(scaled), -digits};
}

double Decimal::to_double() const {
  const std::string text = to_string();  // a library's reader rounds to the nearest double
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string Decimal::to_string() const {
  return exponent == 0 ? fmt::format("{}", mantissa) : fmt::format("{}e{}", mantissa, exponent);
}

std::optional<std::int64_t> round_half_up(const Decimal& a, const Decimal& b, std::int64_t scale) {
  EMPLACE_CHECK(a.mantissa >= 0 && b.mantissa >= 0 && scale >= 0);
  // Two mantissas below 10^18 fill at most 120 bits; the scale joins while there is room.
  Wide product = static_cast<Wide>(a.mantissa) * static_cast<Wide>(b.mantissa);
  if (product == 0 || scale == 0) return 0;
  int exponent = a.exponent + b.exponent;
  for (; scale % 10 == 0; scale /= 10) ++exponent;
  for (; product % 10 == 0; product /= 10) ++exponent;
  if (product > ~Wide{0} / static_cast<Wide>(scale)) return std::nullopt;
  product *= static_cast<Wide>(scale);
  for (; exponent > 0; --exponent) {
    if (product > static_cast<Wide>(kMaxResult)) return std::nullopt;
    product *= 10;
  }
  if (exponent < -38) return 0;  // product < 2^128 < 10^39, so the value is below one half
  Wide divisor = 1;
  for (; exponent < 0; ++exponent) divisor *= 10;
  const Wide quotient = product / divisor;
  const Wide remainder = product % divisor;
  const Wide rounded = remainder >= divisor - remainder ? quotient + 1 : quotient;
  if (rounded > static_cast<Wide>(kMaxResult)) return std::nullopt;
  return static_cast<std::int64_t>(rounded);
}

}  // namespace emplace
