// Small things about text.
#pragma once

#include <string>
#include <string_view>

namespace emplace {

bool is_utf8(std::string_view text);

// What is wrong with a name that comes from outside: it is not UTF-8, which no JSON could hold, or
// has characters that command terminals. Empty where nothing is.
std::string_view fault_of_name(std::string_view name);

// The text with what is not UTF-8, and control characters other than line ends and tabs, written as
// \x1b: for terminals.
std::string printable(std::string_view text);

// The text without spaces, tabs and line ends around it.
inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Whether the whole text is as the pattern says, in which "*" stands for any text, also for none.
inline bool matches_pattern(std::string_view pattern, std::string_view text) {
  // Not fnmatch: names may contain '[', '?' and '\\', which mean something to it; 1.5x as fast.
  // Greedy: a star takes as little as it can, and more when the rest does not fit.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace emplace
