// What makes one placement better than another.
#pragma once

#include "sim/throughput.h"

namespace emplace {

enum class Goal {
  kLatency,     // the time of one step
  kThroughput,  // the period of a stream of steps
};

struct Objective {
  Goal goal = Goal::kLatency;
  Overlap overlap = Overlap::kFull;  // of a stream

  bool throughput() const { return goal == Goal::kThroughput; }
};

}  // namespace emplace
