#include "report/text_style.h"

#include <algorithm>
#include <atomic>

namespace emplace {
namespace {

std::atomic<std::size_t> width_of_text{kUsualWidth};
std::atomic<bool> is_ascii_only{false};

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

}  // namespace

std::size_t text_width() {
  return width_of_text.load();
}

void set_text_width(std::size_t columns) {
  constexpr std::size_t kLeast = 40;
  width_of_text.store(std::max(kLeast, columns));
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string shortened(const std::string& text, std::size_t columns) {
  constexpr std::string_view kEllipsis = "...";
  if (display_width(text) <= columns) return text;
  std::size_t end = 0;
  for (std::size_t width = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && width++ + kEllipsis.size() >= columns) break;
  }
  return text.substr(0, end) + std::string(kEllipsis);
}

bool ascii_only() {
  return is_ascii_only.load();
}

void set_ascii_only(bool only) {
  is_ascii_only.store(only);
}

}  // namespace emplace
