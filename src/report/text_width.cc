#include "report/text_width.h"

#include <algorithm>
#include <atomic>

namespace emplace {
namespace {

std::atomic<std::size_t> width_of_text{kUsualWidth};

}  // namespace

std::size_t text_width() {
  return width_of_text.load();
}

void set_text_width(std::size_t columns) {
  constexpr std::size_t kLeast = 40;
  width_of_text.store(std::max(kLeast, columns));
}

}  // namespace emplace
