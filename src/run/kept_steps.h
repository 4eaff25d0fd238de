// Some of many steps, so that what is kept does not grow with a run's length: all of them at first,
// later evenly spread ones.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "exec/runtime.h"

namespace emplace {

class KeptSteps {
 public:
  static constexpr std::size_t kMost = 512;

  void add(exec::StepRecord record) {
    if (seen_++ % every_ != 0) return;
    if (kept_.size() == kMost) {
      for (std::size_t i = 1; i < kMost / 2; ++i) kept_[i] = std::move(kept_[2 * i]);
      kept_.resize(kMost / 2);
      every_ *= 2;  // of which the record is one, as kMost is even
    }
    kept_.push_back(std::move(record));
  }

  const std::vector<exec::StepRecord>& records() const { return kept_; }
  bool empty() const { return kept_.empty(); }

 private:
  std::vector<exec::StepRecord> kept_;
  std::size_t every_ = 1;
  std::size_t seen_ = 0;
};

}  // namespace emplace
