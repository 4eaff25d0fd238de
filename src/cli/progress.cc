#include "cli/progress.h"

#include <chrono>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/messages.h"

namespace emplace::cli {
namespace {

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void clear_line() {
  constexpr std::string_view kClear = "\r\033[K";
  std::fwrite(kClear.data(), 1, kClear.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

Progress::Progress(std::function<std::string()> line)
    : line_(std::move(line)), terminal_(isatty(STDERR_FILENO) != 0) {
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
    std::string line = line_();
    if (terminal_) {
      line.resize(std::min(line.size(), terminal_width() - 1));
      clear_line();
      say(line);
    } else {
      say(line + "\n");
    }
  } while (!done_changed_.wait_for(lock, interval, is_done));
  if (terminal_) clear_line();
}

}  // namespace emplace::cli
