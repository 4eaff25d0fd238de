// Orders of ops for a placement: the priorities are searched for together with the devices.
#pragma once

#include <emplace/search.h>

#include "base/rng.h"

#include "placer/context.h"

namespace emplace {

// Priorities by the longest path to the end of the step, where a tensor takes `transfer_weight`
// times as long as its link alone would need: above 1 where channels are busy. With `noise` each
// op's duration is changed by up to that share, up or down.
Schedule weighted_ranks(const Problem& problem, const Placement& placement, double transfer_weight,
                        double noise, Rng& rng);

// Tries `tries` orders of the solution's placement, known ones first, then random ones, and keeps
// the best; ends when the clock's time is spent. Returns whether it found a better one; counts its
// evaluations.
bool improve_order(Evaluator& evaluator, const Budget& clock, Solution& solution, int tries,
                   Rng& rng);

}  // namespace emplace
