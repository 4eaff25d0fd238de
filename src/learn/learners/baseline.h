// What costs are compared with: their moving average.
#pragma once

#include <optional>
#include <string>

#include "learn/train/state.h"

namespace emplace::learn {

class MovingBaseline {
 public:
  // Begins with `first`, or with the first mean that it is told.
  explicit MovingBaseline(double decay, std::optional<double> first = {})
      : decay_(decay), first_(first), value_(first) {}

  // Before anything was told: `otherwise`.
  double value(double otherwise) const { return value_.value_or(otherwise); }
  void update(double mean) { value_ = value_ ? decay_ * *value_ + (1 - decay_) * mean : mean; }
  void restart() { value_ = first_; }

  void save(StateWriter& state) const {
    state.put("baseline", value_ ? std::vector<double>{*value_} : std::vector<double>{});
  }
  void load(const StateReader& state) {
    const std::vector<double> saved = state.reals("baseline");
    value_ = saved.empty() ? std::nullopt : std::optional<double>(saved[0]);
  }

 private:
  double decay_;
  std::optional<double> first_;
  std::optional<double> value_;
};

}  // namespace emplace::learn
