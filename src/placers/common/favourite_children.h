// Favourite children by linear programming: which successor of each op should stay on its device so
// that, with devices without end and small communication times, the step is shortest. Hanen,
// Munier: "An approximation algorithm for scheduling dependent tasks on m processors with small
// communication delays", 1995; rounded as in Jeon et al., SoCC 2020 (Baechi).
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "placers/common/earliest_task.h"

namespace emplace {

struct FavouriteOptions {
  double threshold = 0.1;  // an edge whose variable is at most this is a favourite
  // When the solver stops with what it has.
  std::int64_t iterations = 40'000;
  double seconds = 1e6;
};

struct FavouriteResult {
  FavouriteChildren favourites;
  bool optimal = true;  // false when the solver was stopped
  bool solved = true;   // false when there was no time to begin: dear transfers are avoided
};

// `floating` marks the ops (by index) that follow their readers; they take no part.
FavouriteResult find_favourite_children(const Problem& problem,
                                        const std::vector<std::uint8_t>& floating,
                                        const FavouriteOptions& options);

}  // namespace emplace
