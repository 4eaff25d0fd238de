// The clock by which executed steps are timed.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/units.h"

#include "exec/spin.h"

namespace emplace::exec {

inline Nanoseconds now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Sleeps as long as that is safe, since several may wait on one core, and spins at the end. No
// longer than until `stopped` says so, which is asked every few milliseconds.
template <class Stopped>
void wait_until(Nanoseconds end, const Stopped& stopped) {
  constexpr Nanoseconds kOversleeps = 200'000;
  constexpr Nanoseconds kBetweenLooks = 10'000'000;
  for (Nanoseconds left = end - now(); left > 0 && !stopped(); left = end - now()) {
    if (left > 2 * kOversleeps) {
      const Nanoseconds slice = std::min(left - kOversleeps, kBetweenLooks);
      std::this_thread::sleep_for(std::chrono::nanoseconds(slice));
    } else {
      pause_briefly();
    }
  }
}

inline void wait_until(Nanoseconds end) {
  wait_until(end, [] { return false; });
}

}  // namespace emplace::exec
