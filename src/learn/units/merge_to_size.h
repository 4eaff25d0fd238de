// Few sets of groups, none of which takes much more time than the others.
#pragma once

#include <cstdint>

#include "learn/units/merger.h"

namespace emplace::learn {

// Merges until there are `most_units` sets, or until no device may run more together. No set takes
// more than 1.5 of the mean share of all time, which is what `most_units` equal sets would have,
// but for groups that alone do: that holds if no more than `most_units` groups (none, where sets
// are to be acyclic) take more than half of the share, and mostly otherwise; where it cannot be,
// the bound is raised in small steps. Nor does a set hold more for the whole step than the smallest
// device has, where that can be.
void merge_to_size(Merger& merger, std::int64_t most_units);

// What sets may take before merge_to_size, so that its bound holds: 1.5 of the mean share, half of
// it where sets are to be acyclic.
Nanoseconds useful_share(const Merger& merger, std::int64_t most_units);

}  // namespace emplace::learn
