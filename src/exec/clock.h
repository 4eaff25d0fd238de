// The clock by which executed steps are timed.
#pragma once

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

// Sleeps as long as that is safe, since several may wait on one core, and spins at the end.
inline void wait_until(Nanoseconds end) {
  constexpr Nanoseconds kOversleeps = 200'000;
  for (Nanoseconds left = end - now(); left > 0; left = end - now()) {
    if (left > 2 * kOversleeps) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(left - kOversleeps));
    } else {
      pause_briefly();
    }
  }
}

}  // namespace emplace::exec
