// From what came of a placement to what a learner minimises (the papers' rewards, with the sign
// turned).
#pragma once

#include <vector>

#include "base/units.h"

#include "cost/problem.h"

#include "learn/train/environment.h"

namespace emplace::learn {

// kRelative: in multiples of the time that all ops take one after the other, so that learning rates
// of plain gradient steps suit every model.
enum class CostScale { kSeconds, kSquareRoot, kLogarithm, kRelative };
enum class Shortage {
  kSignal,   // a placement that does not fit costs as one of `failing_seconds`
  kPenalty,  // its time plus `penalty_seconds` for every part of the capacity that is missing
};

struct CostSettings {
  CostScale scale = CostScale::kSquareRoot;
  Shortage shortage = Shortage::kSignal;
  double failing_seconds = 100;
  // For an overflow as large as the smallest device, in multiples of the fastest imaginable time of
  // all ops on one device.
  double penalty = 10;
};

// By outcome. What needs a missing link costs as `failing_seconds`, or as lacking the memory of
// every device.
class Costs {
 public:
  Costs(const Problem& problem, const CostSettings& settings);

  double operator()(const SampleOutcome& outcome) const;
  // Of what does not fit under kSignal, and the value that baselines begin with.
  double failing() const;
  const CostSettings& settings() const { return settings_; }

 private:
  double scaled(double seconds) const;

  CostSettings settings_;
  double impossible_seconds_ = 0;  // of what needs a link that does not exist
  double serial_seconds_ = 0;      // all ops one after the other where they are fastest
  double smallest_capacity_ = 0;
};

}  // namespace emplace::learn
