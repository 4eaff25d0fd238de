#include "cli/live_view.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "report/table.h"
#include "report/text_style.h"

namespace emplace::cli {
namespace {

constexpr std::size_t kMostDevices = 16;

}  // namespace

std::string sparkline(const std::vector<double>& numbers, std::size_t columns) {
  static constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> kAscii{"_", ".", "-", "~", "=", "+", "*", "#"};
  const auto& levels = ascii_only() ? kAscii : kBlocks;
  const std::size_t shown = std::min(columns, numbers.size());
  if (shown == 0) return {};
  const double largest = *std::max_element(numbers.begin(), numbers.end());
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    // The last of those that share a column: what was reached by then.
    const double number = numbers[(i + 1) * numbers.size() / shown - 1];
    const double share = largest > 0 ? std::clamp(number / largest, 0.0, 1.0) : 0;
    text += levels[static_cast<std::size_t>(share * 7 + 0.5)];
  }
  return text;
}

void LiveView::remember(double gap) {
  if (++waiting_ < every_ && !gaps_.empty()) {
    gaps_.back() = gap;
    return;
  }
  waiting_ = 0;
  gaps_.push_back(gap);
  if (gaps_.size() < kMost) return;
  for (std::size_t i = 0; 2 * i + 1 < gaps_.size(); ++i) gaps_[i] = gaps_[2 * i + 1];
  gaps_.resize(gaps_.size() / 2);
  every_ *= 2;
}

std::vector<std::string> LiveView::draw(const RunView& now, std::size_t columns) {
  std::vector<std::string> lines{now.line};
  if (now.gap) remember(*now.gap);
  if (!gaps_.empty()) {
    const std::string text = fmt::format("{:.1f} % now", 100 * gaps_.back());
    const std::size_t room = columns > text.size() + 12 ? columns - text.size() - 12 : 0;
    lines.push_back(
        fmt::format("  gap  {}  {}", sparkline(gaps_, std::min<std::size_t>(room, 60)), text));
  }
  if (now.loads.empty() || now.loads.size() > kMostDevices) return lines;
  std::size_t names = 0;
  for (const RunView::Load& load : now.loads) names = std::max(names, load.device.size());
  if (columns < names + 20) return lines;
  const int room = static_cast<int>(std::min<std::size_t>(columns - names - 16, 40));
  for (const RunView::Load& load : now.loads) {
    lines.push_back(fmt::format("  {:<{}}  {:>3.0f} %  {}", load.device, names, 100 * load.share,
                                bar(std::clamp(load.share, 0.0, 1.0), room)));
  }
  return lines;
}

}  // namespace emplace::cli
