#include "cli/progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/messages.h"
#include "cli/terminal.h"

namespace emplace::cli {
namespace {

// What cannot be written is of no consequence.
void draw_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

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
  draw_text(erased());
}

void Progress::draw() {
  const TerminalSize size = terminal_size(STDERR_FILENO);
  Lines lines = lines_(size.columns);
  if (!terminal_) {
    if (lines.front() != said_) say(lines.front() + "\n");
    said_ = lines.front();
    return;
  }
  // What is higher than the terminal could not be erased again.
  if (lines.size() + 1 > size.rows) lines.resize(1);
  std::string text = erased();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += '\n';
    text += cut_to_columns(lines[i], size.columns - 1);
  }
  drawn_ = lines.size();
  draw_text(text);
}

std::string Progress::erased() {
  if (!terminal_ || drawn_ == 0) return {};
  std::string text = drawn_ > 1 ? fmt::format("\033[{}A", drawn_ - 1) : std::string();
  drawn_ = 0;
  return text + "\r\033[J";
}

}  // namespace emplace::cli
