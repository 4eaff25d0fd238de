// What a transfer costs beside the link's time. Devices wake, wait and launch for what arrives, so
// placements that send many small tensors take longer than links alone would make them, and a
// search finds exactly those. So what a search proposes is executed, and latencies change until all
// that was executed is predicted as it was measured, and the search proposes something else. Each
// pair of kinds that a rule joins has a cost of its own.
#pragma once

#include <functional>
#include <optional>

#include "run/profile.h"

namespace emplace {

struct TransferCostSettings {
  int rounds = 8;                          // proposals at most
  double seconds = 2;                      // for each search
  double near = 0.02;                      // a prediction that is this near is left as it is
  std::function<void(int)> proposed = {};  // is told the number of each proposal
  // How many times as long everything takes now as in the profile. It is asked where no device
  // holds the model alone.
  std::function<double()> slower = {};
};

// How long an executed step takes; nothing where it fails, for want of memory.
using ExecutedStep =
    std::function<std::optional<Nanoseconds>(const Problem&, const Placement&, const Schedule&)>;

// Changes latencies of links that are not throttled, in the profile's cluster and its links, and
// says in the profile how far it got. A rule whose pairs of kinds differ becomes a rule for each.
void learn_transfer_costs(const ExecutedStep& execute, const TransferCostSettings& settings,
                          Profile& profile);

}  // namespace emplace
