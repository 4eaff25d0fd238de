#include "cli/progress.h"

#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

namespace emplace::cli {

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (!quiet_ && terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(const std::string& line) {
  if (quiet_) return;
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
    return;
  }
  constexpr std::chrono::seconds kInterval{2};
  const auto now = std::chrono::steady_clock::now();
  if (now - last_shown_ < kInterval) return;
  last_shown_ = now;
  fmt::print(stderr, "{}\n", line);
}

}  // namespace emplace::cli
