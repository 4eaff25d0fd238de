// The largest batch whose step fits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "placer/run.h"

#include "run/batch_range.h"
#include "run/subset_problems.h"

namespace emplace {

// One batch that was tried.
struct BatchProbe {
  std::int64_t batch = 0;
  bool fits = false;
  std::string how;  // what was found or proven, in a few words
  // That fits, where one does.
  Placement placement = {};
  Schedule schedule = {};
};

struct BatchSearch {
  std::optional<std::int64_t> largest;  // that fits
  std::vector<BatchProbe> tried;        // in that order

  const BatchProbe* best() const;  // nullptr: none fits
};

// Doubles from the lowest until one does not fit, then halves what is between. It is taken that
// what fits still fits with less; so an answer of `probe` that is no proof may leave a larger batch
// unfound.
BatchSearch find_largest_batch(const BatchRange& range,
                               const std::function<BatchProbe(std::int64_t batch)>& probe);

// Whether a placement fits: one device, quick splits, and then `auto` under the budget.
BatchProbe probe_batch(std::int64_t batch, const SubsetProblems& problems, const Budget& budget,
                       std::vector<PlacerRun> runs = {});

}  // namespace emplace
