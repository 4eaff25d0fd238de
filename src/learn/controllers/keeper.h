// Saves now and then while others work.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace emplace::learn {

class Keeper {
 public:
  Keeper(double seconds, std::function<void()> save)
      : pause_(seconds > kShortest ? std::min(seconds, kLongest) : kShortest),
        save_(std::move(save)),
        thread_([this] { work(); }) {}
  // When no call is under way.
  ~Keeper() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

 private:
  // Of pauses, in seconds: none would keep the others from working, and clocks have an end.
  static constexpr double kShortest = 0.001;
  static constexpr double kLongest = 1e8;

  void work() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause_, [&] { return over_; })) {
      lock.unlock();
      try {
        save_();
      } catch (const std::exception&) {
        // Short of memory, say; the next one may do, and the last one is not made here.
      }
      lock.lock();
    }
  }

  std::chrono::duration<double> pause_;
  std::function<void()> save_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // last, as it uses the others
};

}  // namespace emplace::learn
