// Lists in one text.
#pragma once

#include <string_view>
#include <vector>

#include "base/text.h"

namespace emplace {

// The parts between separators, without the spaces around them; at least one.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at != std::string_view::npos; at = text.find(separator)) {
    if (!parts.empty()) text.remove_prefix(at + 1);
    parts.push_back(trim(text.substr(0, text.find(separator))));
  }
  return parts;
}

}  // namespace emplace
