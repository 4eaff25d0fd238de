#include "cli/progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/messages.h"
#include "cli/terminal.h"

namespace emplace::cli {

Progress::Progress(std::function<std::string()> line)
    : Progress([line = std::move(line)](std::size_t) { return Lines{line()}; }) {}

Progress::Progress(std::function<Lines(std::size_t columns)> lines)
    : lines_(std::move(lines)), terminal_(moves_cursor(STDERR_FILENO)) {
  if (!quiet()) thread_ = std::thread([this] { tick(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  done_changed_.notify_one();
  thread_.join();
}

void Progress::tick() {
  using std::chrono::milliseconds;
  const milliseconds interval{terminal_ ? 200 : 3000};
  const auto is_done = [this] { return done_; };
  std::unique_lock lock(mutex_);
  if (done_changed_.wait_for(lock, milliseconds{terminal_ ? 500 : 3000}, is_done)) return;
  do {
    draw();
  } while (!done_changed_.wait_for(lock, interval, is_done));
  erase();
  std::fflush(stderr);
}

void Progress::draw() {
  const TerminalSize size = terminal_size(STDERR_FILENO);
  Lines lines = lines_(size.columns);
  if (!terminal_) {
    fmt::print(stderr, "{}\n", lines.front());
    std::fflush(stderr);
    return;
  }
  // What is higher than the terminal could not be erased again.
  if (lines.size() + 1 > size.rows) lines.resize(1);
  erase();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    fmt::print(stderr, "{}{}", i == 0 ? "" : "\n", cut_to_columns(lines[i], size.columns - 1));
  }
  drawn_ = lines.size();
  std::fflush(stderr);
}

void Progress::erase() {
  if (!terminal_ || drawn_ == 0) return;
  if (drawn_ > 1) fmt::print(stderr, "\033[{}A", drawn_ - 1);
  fmt::print(stderr, "\r\033[J");
  drawn_ = 0;
}

}  // namespace emplace::cli
