// Waiting for microseconds: a lock that spins, and a signal that spins first.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace emplace::exec {

inline void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) pause_briefly();
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

// Whoever waits has a core of its own, or must leave it to others soon.
enum class Patience { kSpin, kSleep };

// One or more threads wait for a condition that others make true and then notify.
class Signal {
 public:
  template <class Condition>
  void wait(Patience patience, const Condition& condition) {
    const int spins = patience == Patience::kSpin ? kManySpins : kFewSpins;
    for (int i = 0; i < spins; ++i) {
      if (condition()) return;
      pause_briefly();
    }
    sleepers_.fetch_add(1);
    for (;;) {
      const std::uint32_t seen = changes_.load();
      if (condition()) break;
      changes_.wait(seen);
    }
    sleepers_.fetch_sub(1);
  }

  void notify() {
    changes_.fetch_add(1);
    if (sleepers_.load() > 0) changes_.notify_all();
  }

 private:
  static constexpr int kFewSpins = 200;
  static constexpr int kManySpins = 4'000'000;  // some tenths of a second

  std::atomic<std::uint32_t> changes_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace emplace::exec
