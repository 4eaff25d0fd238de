#include "report/text_style.h"

#include <algorithm>
#include <atomic>

namespace emplace {
namespace {

std::atomic<std::size_t> width_of_text{kUsualWidth};
std::atomic<bool> is_ascii_only{false};

}  // namespace

std::size_t text_width() {
  return width_of_text.load();
}

void set_text_width(std::size_t columns) {
  constexpr std::size_t kLeast = 40;
  width_of_text.store(std::max(kLeast, columns));
}

bool ascii_only() {
  return is_ascii_only.load();
}

void set_ascii_only(bool only) {
  is_ascii_only.store(only);
}

}  // namespace emplace
