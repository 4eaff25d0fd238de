// What costs are compared with: their moving average.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "learn/train/state.h"

namespace emplace::learn {

class MovingBaseline {
 public:
  // Begins with `first`, or with the first mean that it is told. With a decay of 1 it is the mean
  // of all that it is told.
  explicit MovingBaseline(double decay, std::optional<double> first = {})
      : decay_(decay), first_(first), value_(first) {}

  // Before anything was told: `otherwise`.
  double value(double otherwise) const { return value_.value_or(otherwise); }
  void update(double mean) {
    ++told_;
    const double kept = decay_ < 1 ? decay_ : 1 - 1 / static_cast<double>(told_);
    value_ = value_ ? kept * *value_ + (1 - kept) * mean : mean;
  }
  void restart() {
    value_ = first_;
    told_ = 0;
  }

  void save(StateWriter& state) const {
    state.put("baseline", value_ ? std::vector<double>{*value_, static_cast<double>(told_)}
                                 : std::vector<double>{});
  }
  void load(const StateReader& state) {
    const std::vector<double> saved = state.reals("baseline");
    value_ = saved.empty() ? std::nullopt : std::optional<double>(saved[0]);
    told_ = saved.size() > 1 ? static_cast<std::int64_t>(saved[1]) : 0;
  }

 private:
  double decay_;
  std::optional<double> first_;
  std::optional<double> value_;
  std::int64_t told_ = 0;
};

}  // namespace emplace::learn
