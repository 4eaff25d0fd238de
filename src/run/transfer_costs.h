// What a transfer costs beside the link's time. Devices wake, wait and launch for what arrives, so
// placements that send many small tensors take longer than links alone would make them, and a
// search finds exactly those. So what a search proposes is executed, and the links' latency is
// raised until it is predicted as it was measured, and the search proposes something else.
#pragma once

#include <functional>
#include <optional>

#include "run/profile.h"

namespace emplace {

struct TransferCostSettings {
  int rounds = 3;      // proposals at most
  double seconds = 2;  // for each search
  double near = 0.02;  // a prediction that is this near is left as it is
};

// How long an executed step takes; nothing where it fails, for want of memory.
using ExecutedStep =
    std::function<std::optional<Nanoseconds>(const Problem&, const Placement&, const Schedule&)>;

// Raises latencies of links that are not throttled, in the profile's cluster and its links.
void learn_transfer_costs(const ExecutedStep& execute, const TransferCostSettings& settings,
                          Profile& profile);

}  // namespace emplace
