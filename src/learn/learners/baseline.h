// What costs are compared with: their moving average.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

#include "learn/train/state.h"

namespace emplace::learn {

class MovingBaseline {
 public:
  // Begins with `first`, or with the first mean that it is told. With a decay of 1 it is the mean
  // of all that it is told. What it is told counts as `share` of a batch.
  explicit MovingBaseline(double decay, std::optional<double> first = {})
      : decay_(decay), first_(first) {
    restart();
  }

  // Before anything was told: `otherwise`.
  double value(double otherwise) const { return known_ ? value_ : otherwise; }
  void update(double mean, double share = 1) {
    told_ += share;
    const double kept = decay_ < 1 ? std::pow(decay_, share) : 1 - share / told_;
    value_ = known_ ? kept * value_ + (1 - kept) * mean : mean;
    known_ = true;
  }
  void restart() {
    known_ = first_.has_value();
    value_ = first_.value_or(0);
    told_ = 0;
  }

  // All that it knows.
  std::vector<double> memory() const {
    return known_ ? std::vector<double>{value_, told_} : std::vector<double>{};
  }
  // Of what others say it knows: a file, another rank.
  static void check_memory(const std::vector<double>& saved) {
    constexpr double kMostTold = 1e15;
    if (saved.empty()) return;
    if (saved.size() != 2 || !std::isfinite(saved[0]) ||
        !(saved[1] >= 0 && saved[1] <= kMostTold)) {
      fail_input("'baseline' is wrong; expected nothing, or a mean and how often it was told one");
    }
  }
  void recall(const std::vector<double>& saved) {
    check_memory(saved);
    known_ = !saved.empty();
    value_ = known_ ? saved[0] : 0;
    told_ = known_ ? saved[1] : 0;
  }
  void save(StateWriter& state) const { state.put("baseline", memory()); }
  void load(const StateReader& state) {
    with_context(state.file_name(), [&] { recall(state.reals("baseline")); });
  }

 private:
  double decay_;
  std::optional<double> first_;
  bool known_ = false;
  double value_ = 0;
  double told_ = 0;  // batches
};

}  // namespace emplace::learn
