// Sampled placements and what came of them, and others who value them for this process: ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/placement.h"

#include "placer/evaluator.h"

namespace emplace {

struct ValuedSample {
  Evaluation value = {};
  bool valid = true;                     // needs no link that does not exist
  std::vector<Nanoseconds> starts = {};  // by op, where they were asked for; 0 if it is not valid
};

// Counted by whoever asks. `all_linked`: every placement is valid.
ValuedSample value_sample(Evaluator& evaluator, const Placement& placement, bool with_starts,
                          bool all_linked);

// Throws an Error where no executed step can have this value. Nothing more is known of what another
// rank has measured: here the same step takes another time.
void check_measured(const Evaluation& value);

class Valuers {
 public:
  virtual ~Valuers() = default;
  // In the order of the placements, as `value_sample` does it. From any thread.
  virtual std::vector<ValuedSample> value(const std::vector<Placement>& placements,
                                          bool with_starts, int threads) = 0;
};

// Ranks that do so for a controller.
class WorkerRanks : public Valuers {
 public:
  // These, from now on; none: it values its samples alone. Throws an Error when they cannot be.
  virtual void choose(std::vector<std::int32_t> ranks) = 0;
};

}  // namespace emplace
