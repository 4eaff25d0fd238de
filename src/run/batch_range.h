// Which batches --batch asks for where it does not name one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/options.h"

namespace emplace {

struct BatchRange {
  static constexpr std::int64_t kMost = std::int64_t{1} << 20;

  std::int64_t low = 1;
  std::int64_t high = kMost;

  // "max", or "8..512"; nothing when it is neither. Throws an Error for a range that is none.
  static std::optional<BatchRange> parse(const std::string& text);
};

inline std::optional<BatchRange> BatchRange::parse(const std::string& text) {
  if (text == "max") return BatchRange{};
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const std::int64_t low = read_integer("batch, from", text.substr(0, dots), 1, kMost);
  const std::int64_t high = read_integer("batch, to", text.substr(dots + 2), 1, kMost);
  if (low > high) fail_option("batch {}: expected the smaller number first", text);
  return BatchRange{low, high};
}

}  // namespace emplace
