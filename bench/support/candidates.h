// Placements that are executed to see how far predictions are off.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cost/problem.h"

#include "sim/placement.h"

namespace emplace::bench {

enum class Origin { kMade, kSingle, kClassical, kSearched };

struct Candidate {
  std::string name;
  Placement placement;
  Schedule schedule = {};
  Origin origin = Origin::kMade;
};

// Of groups of cores: one device, halves, equal parts of the time on every device, three random
// cuts, two random placements (runs of 8 and of 3 groups), the classical placers' and two of this
// library's search, which has so many seconds. Of a GPU, which is the first device, and a CPU: all
// on the GPU, the first, last or middle part of its time on the CPU, groups scattered, and those of
// the placers. `placers_alone`: each device alone, and the placers'.
std::vector<Candidate> candidates(const std::shared_ptr<const Problem>& problem, double seconds,
                                  bool placers_alone = false);

}  // namespace emplace::bench
