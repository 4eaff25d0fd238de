// The time of a run, looked at wherever networks compute: on large graphs one round takes many
// times the budget, and neither samples nor gradients are of use before they are whole.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>

#include <emplace/search.h>

namespace emplace::learn {

// A standard exception, as libtorch hands on no others.
struct OutOfTime final : std::exception {
  const char* what() const noexcept override { return "out of time"; }
};

// From here until the scope ends, check_time() in this thread, and in those of
// parallel_for_tensors, throws when the budget's time is spent or the run is cancelled.
class Deadline {
 public:
  explicit Deadline(Budget budget) : budget_(std::move(budget)), outer_(current()) {
    budget_.evaluations.reset();
    current() = this;
  }
  ~Deadline() { current() = outer_; }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Whether that has happened, whatever has become of the exception since.
  bool passed() const { return passed_; }

  static Deadline*& current() {
    static thread_local Deadline* deadline = nullptr;
    return deadline;
  }
  void check() {
    if (!budget_.spent(0)) return;
    passed_ = true;
    throw OutOfTime();
  }

 private:
  Budget budget_;
  Deadline* outer_;
  std::atomic<bool> passed_{false};
};

inline void check_time() {
  if (Deadline* deadline = Deadline::current()) deadline->check();
}

// For loops over ops or units: now and then.
inline void check_time_at(std::size_t index) {
  constexpr std::size_t kBetweenLooks = 4096;
  if (index % kBetweenLooks == 0) check_time();
}

}  // namespace emplace::learn
