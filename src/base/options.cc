#include "base/options.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/decimal.h"

namespace emplace {
namespace {

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (c == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::int64_t read_integer(std::string_view name, std::string_view text, std::int64_t low,
                          std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    fail_option("option '{}': '{}' is not a whole number from {} to {}", name, text, low, high);
  }
  return value;
}

double read_real(std::string_view name, std::string_view text, double low, double high) {
  const auto parsed = Decimal::parse(text);
  if (!parsed || parsed->to_double() < low || parsed->to_double() > high) {
    fail_option("option '{}': '{}' is not a number from {} to {}", name, text, low, high);
  }
  return parsed->to_double();
}

bool read_flag(std::string_view name, std::string_view text) {
  if (text == "true" || text == "yes" || text == "1") return true;
  if (text == "false" || text == "no" || text == "0") return false;
  fail_option("option '{}': '{}' is neither true nor false", name, text);
}

const std::string& read_choice(std::string_view name, std::string_view text,
                               const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) {
    fail_option("option '{}': '{}' is not one of: {}", name, text, fmt::join(choices, ", "));
  }
  return *found;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const auto nearest =
      std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
        return edit_distance(name, a) < edit_distance(name, b);
      });
  if (nearest == known.end() || edit_distance(name, *nearest) > 1 + name.size() / 3) return {};
  return fmt::format(" (did you mean '{}'?)", *nearest);
}

}  // namespace emplace
