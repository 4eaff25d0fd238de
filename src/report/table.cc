#include "report/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "report/text_style.h"

namespace emplace {
namespace {

std::string repeat(std::string_view piece, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += piece;
  return result;
}

}  // namespace

// By column; 0 for one that is left out.
std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  std::size_t total = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
    total += width + 2;
  }
  for (std::size_t i = columns_.size(); i-- > 0 && total > text_width() + 1;) {
    if (columns_[i].spare) total -= std::exchange(widths[i], 0) + 2;
  }
  return widths;
}

std::string Table::to_string() const {
  const std::vector<std::size_t> widths = this->widths();
  std::string text;
  const auto add_row = [&](auto cell_of) {
    std::string line = " ";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      if (columns_[i].spare && widths[i] == 0) continue;
      const std::string padding(widths[i] - display_width(cell), ' ');
      line += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_row([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  std::size_t total = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (!columns_[i].spare || widths[i] > 0) total += widths[i] + 2;
  }
  text += " " + repeat(ascii_only() ? "-" : "\u2500", total - 2) + "\n";
  for (const auto& row : rows_) {
    add_row([&](std::size_t i) -> const std::string& { return row[i]; });
  }
  return text;
}

std::string bar(double share, int width) {
  constexpr std::array<std::string_view, 8> kParts{"",       "\u258F", "\u258E", "\u258D",
                                                   "\u258C", "\u258B", "\u258A", "\u2589"};
  if (ascii_only()) {
    return repeat("#", static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * width)));
  }
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  return repeat("\u2588", static_cast<std::size_t>(eighths / 8)) +
         std::string(kParts[static_cast<std::size_t>(eighths % 8)]);
}

}  // namespace emplace
