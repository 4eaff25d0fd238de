#include "base/units.h"

#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/decimal.h"
#include "base/text.h"

namespace emplace {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t scale;
};

constexpr std::array<Unit, 10> kByteUnits{{{"", 1},
                                           {"B", 1},
                                           {"KB", 1'000},
                                           {"MB", 1'000'000},
                                           {"GB", 1'000'000'000},
                                           {"TB", 1'000'000'000'000},
                                           {"KiB", 1LL << 10},
                                           {"MiB", 1LL << 20},
                                           {"GiB", 1LL << 30},
                                           {"TiB", 1LL << 40}}};

// Of bytes.
constexpr std::array<Unit, 8> kBitUnits{{{"Kb", 125},
                                         {"Mb", 125'000},
                                         {"Gb", 125'000'000},
                                         {"Tb", 125'000'000'000},
                                         {"Kbit", 125},
                                         {"Mbit", 125'000},
                                         {"Gbit", 125'000'000},
                                         {"Tbit", 125'000'000'000}}};

// Splits "1.5GiB" where the number ends. An exponent's "e" belongs to the number.
std::size_t number_length(std::string_view text) {
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    const bool sign =
        (c == '+' || c == '-') && (i == 0 || text[i - 1] == 'e' || text[i - 1] == 'E');
    const bool exponent = (c == 'e' || c == 'E') && i > 0;
    if (!(c >= '0' && c <= '9') && c != '.' && !sign && !exponent) break;
  }
  return i;
}

template <std::size_t kCount>
std::optional<std::int64_t> parse_amount(std::string_view text,
                                         const std::array<Unit, kCount>& units) {
  text = trim(text);
  const std::size_t length = number_length(text);
  const auto number = Decimal::parse(text.substr(0, length));
  if (!number || number->negative()) return std::nullopt;
  const std::string_view name = trim(text.substr(length));
  for (const Unit& unit : units) {
    if (unit.name == name) return round_half_up(*number, unit.scale);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  return parse_amount(text, kByteUnits);
}

std::optional<std::int64_t> parse_bandwidth(std::string_view text) {
  text = trim(text);
  if (!text.ends_with("/s") && !text.ends_with("ps")) return std::nullopt;
  text.remove_suffix(2);
  if (const auto bits = parse_amount(text, kBitUnits)) return bits;
  const bool has_unit = text.ends_with('B');
  return has_unit ? parse_bytes(text) : std::nullopt;
}

std::optional<double> parse_seconds(std::string_view text) {
  text = trim(text);
  const std::size_t length = number_length(text);
  const auto number = Decimal::parse(text.substr(0, length));
  if (!number || number->negative()) return std::nullopt;
  const std::string_view unit = trim(text.substr(length));
  const double value = number->to_double();
  if (unit.empty() || unit == "s") return value;
  if (unit == "ms") return value / 1e3;
  if (unit == "m" || unit == "min") return value * 60;
  if (unit == "h") return value * 3600;
  return std::nullopt;
}

std::string format_bytes(Bytes bytes) {
  if (bytes == kUnlimited) return "unlimited";
  constexpr std::array<std::string_view, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value, std::abs(value) < 100 ? 1 : 0, kNames[unit]);
}

std::string format_time(Nanoseconds time) {
  const double ns = static_cast<double>(time);
  const auto with = [](double value, std::string_view unit) {
    const int digits = value >= 100 ? 1 : value >= 10 ? 2 : 3;
    return fmt::format("{:.{}f} {}", value, digits, unit);
  };
  if (time < 1'000) return fmt::format("{} ns", time);
  if (time < 1'000'000) return with(ns / 1e3, "us");
  if (time < 10'000'000'000) return with(ns / 1e6, "ms");
  return with(ns / 1e9, "s");
}

std::string format_count(std::int64_t n) {
  std::string digits = fmt::format("{}", n < 0 ? -n : n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return n < 0 ? "-" + digits : digits;
}

}  // namespace emplace
