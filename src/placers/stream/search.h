// Searches for the assignment of the least period of a stream: multilevel annealing, and above it a
// memetic layer that improves its best answers by V-cycles and combines them by overlay.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "placer/budget.h"

#include "placers/stream/model.h"

namespace emplace {

struct StreamSearchOptions {
  std::uint64_t seed = 1;
  int threads = 1;
};

struct StreamSolution {
  std::vector<DeviceId> device_of_item;
  Nanoseconds period = 0;
  Bytes overflow = 0;  // of all devices together; 0: it fits
};

// The best assignment found: one that fits, if any was found, else one that overflows least. Ends
// when the budget is spent, where an evaluation is one move proposed, or when a fitting assignment
// of at most `lower_bound` is found. Without a budget it would not end; it must have one. Under an
// evaluation budget the answer depends on the seed alone, not on the number of threads.
//
// `starts` are assignments to begin with; where an item may not be on its device, it is put
// elsewhere. `on_improvement` is called, from one thread at a time, with every new best assignment.
//
// The answer needs only links that the cluster has. Throws an Error where no set of mutually linked
// devices can hold all items (linked_devices.h).
StreamSolution search_stream(const StreamModel& model, const StreamSearchOptions& options,
                             const Budget& budget, Nanoseconds lower_bound,
                             std::span<const std::vector<DeviceId>> starts,
                             const std::function<void(const StreamSolution&)>& on_improvement);

}  // namespace emplace
