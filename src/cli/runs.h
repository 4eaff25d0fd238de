// Several placers on one problem, one after the other, with progress.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "placer/run.h"

#include "cli/command.h"

namespace emplace::cli {

// --placer(s), --scheduler(s) and seeds, as lists of runs.
// "all" stands for every placer; schedulers "all" for own, fifo, pct, msr.
std::vector<PlacerRun> make_runs(const std::string& placers, const std::string& schedulers,
                                 std::uint64_t first_seed, int seeds);

// Best first; ties in the order of the runs. Stops early, with what is done so far, when cancelled
// or when the budget's time is up.
std::vector<RunResult> run_all(const std::shared_ptr<const Simulator>& simulator,
                               const std::vector<PlacerRun>& runs, const BudgetArguments& budget,
                               const ObjectiveArguments& objective, const Session& session);

// Says why nothing can fit and leaves the exit code, if that is proven before any search.
bool refuse_hopeless(const Problem& problem, const ObjectiveArguments& objective, Session& session);

}  // namespace emplace::cli
