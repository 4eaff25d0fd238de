// What people ask for, as runs of placers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placer/run.h"

namespace emplace {

// Placers and schedulers as lists of runs. Placers are specs ("heft,metis(imbalance=1.1)"),
// families ("heuristic") or "all"; schedulers a list of own, fifo, pct, msr, best, or "all": own
// and each scheduler. Randomised placers run once for each of `seeds` seeds. Throws an Error when
// one of them is wrong.
std::vector<PlacerRun> make_runs(const std::string& placers, const std::string& schedulers,
                                 std::uint64_t first_seed = 1, int seeds = 1);

// The scheduler that all of the runs are under; own where they differ, or may take any order.
std::string common_scheduler(const std::vector<PlacerRun>& runs);

}  // namespace emplace
