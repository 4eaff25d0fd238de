#include "run/ticker.h"

#include <chrono>
#include <utility>

namespace emplace {

Ticker::Ticker(ProgressListener listener, std::function<std::string()> line)
    : listener_(std::move(listener)), line_(std::move(line)) {
  if (listener_) thread_ = std::thread([this] { tick(); });
}

Ticker::~Ticker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  done_changed_.notify_one();
  thread_.join();
}

void Ticker::tick() {
  constexpr std::chrono::milliseconds kInterval{200};
  std::unique_lock lock(mutex_);
  while (!done_changed_.wait_for(lock, kInterval, [this] { return done_; })) {
    listener_({.line = line_(), .seconds = clock_.elapsed_seconds()});
  }
}

}  // namespace emplace
