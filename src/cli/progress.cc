#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/core.h>

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
  } else {
    fmt::print(stderr, "{}\n", line);
  }
}

}  // namespace emplace::cli
