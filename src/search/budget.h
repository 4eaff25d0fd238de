// How long a search may go on. Constructive placers finish whatever the budget; searches ask
// `spent` between evaluations.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace emplace {

class Budget {
 public:
  std::optional<double> seconds = std::nullopt;
  std::optional<std::int64_t> evaluations = std::nullopt;
  const std::atomic<bool>* cancelled = nullptr;  // set from outside, e.g. by Ctrl-C
  // That a search may use. Under an evaluation budget its answer does not depend on them.
  int threads = 1;

  // What a search takes for itself when nobody says how long it may go on.
  static constexpr double kDefaultSeconds = 10;
  Budget or_default(double own_seconds = kDefaultSeconds) const {
    Budget limited = *this;
    if (!seconds && !evaluations) limited.seconds = own_seconds;
    return limited;
  }

  double elapsed_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool spent(std::int64_t evaluations_so_far) const {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) return true;
    if (evaluations && evaluations_so_far >= *evaluations) return true;
    return seconds && elapsed_seconds() >= *seconds;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace emplace
