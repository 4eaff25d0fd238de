#include "run/ticker.h"

#include <chrono>
#include <utility>

namespace emplace {

Ticker::Ticker(ProgressListener listener, std::function<std::string()> line)
    : Ticker(
          listener
              ? [listener, line = std::move(line),
                 clock =
                     Budget()] { listener({.line = line(), .seconds = clock.elapsed_seconds()}); }
              : std::function<void()>()) {}

Ticker::Ticker(std::function<void()> call) : call_(std::move(call)) {
  if (call_) thread_ = std::thread([this] { tick(); });
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
    call_();
  }
}

}  // namespace emplace
