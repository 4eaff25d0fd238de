#include "report/prose.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/split.h"
#include "base/units.h"

#include "report/text_style.h"

namespace emplace {
namespace {

// A space where a line may end: not between a number and its unit, nor within a range.
bool breakable(const std::string& text, std::size_t at) {
  if (text[at] != ' ') return false;
  const auto after_number = [&] { return at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9'; };
  const auto in_range = [&] {
    return (at > 0 && text[at - 1] == '.') || (at + 1 < text.size() && text[at + 1] == '.');
  };
  return !after_number() && !in_range();
}

}  // namespace

std::string join_words(const std::vector<std::string>& items) {
  if (items.size() < 2) return items.empty() ? "" : items[0];
  return fmt::format("{} and {}", fmt::join(items.begin(), items.end() - 1, ", "), items.back());
}

std::string count_of(std::int64_t number, const std::string& thing) {
  return fmt::format("{} {}{}", format_count(number), thing, number == 1 ? "" : "s");
}

std::string unwrapped(const std::string& lines) {
  std::vector<std::string_view> parts = split(trim(lines), '\n');
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string wrapped(const std::string& text) {
  // Longer lines are hard to read, however wide the terminal is.
  const std::size_t width = std::min(text_width(), kUsualWidth);
  std::string result;
  std::string line = " ";
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && !breakable(text, at)) continue;
    if (line.size() + at - begin > width && line.find_first_not_of(' ') != std::string::npos) {
      result += line + "\n";
      line = "  ";
      if (begin < at && text[begin] != ' ') line += " ";
    }
    line += text.substr(begin, at - begin);
    begin = at;
  }
  return result + line + "\n";
}

std::string search_time(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.0f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::string fitted(const std::string& report) {
  std::string result;
  for (std::size_t begin = 0; begin < report.size();) {
    const std::size_t end = std::min(report.find('\n', begin), report.size());
    const std::string line = report.substr(begin, end - begin);
    const bool prose = line.size() > text_width() && line.find("  ") == std::string::npos;
    // Wrapped text is indented by one.
    result += prose ? wrapped(line).substr(1) : line + "\n";
    begin = end + 1;
  }
  return result;
}

}  // namespace emplace
