// The least of values[begin, end), in constant time, by a table over powers of two.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace emplace {

class RangeMinimum {
 public:
  explicit RangeMinimum(std::span<const std::int64_t> values) {
    levels_.emplace_back(values.begin(), values.end());
    for (std::size_t width = 2; width <= values.size(); width *= 2) {
      const auto& below = levels_.back();
      std::vector<std::int64_t> level(values.size() - width + 1);
      for (std::size_t i = 0; i < level.size(); ++i) {
        level[i] = std::min(below[i], below[i + width / 2]);
      }
      levels_.push_back(std::move(level));
    }
  }

  // begin < end.
  std::int64_t operator()(std::int32_t begin, std::int32_t end) const {
    const auto width = static_cast<std::uint32_t>(end - begin);
    const int level = std::bit_width(width) - 1;
    return std::min(levels_[level][begin], levels_[level][end - (1 << level)]);
  }

 private:
  std::vector<std::vector<std::int64_t>> levels_;
};

}  // namespace emplace
