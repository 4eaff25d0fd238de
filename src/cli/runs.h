// Several placers on one problem, one after the other, with progress.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "placer/run.h"

#include "cli/command.h"
#include "cli/learning.h"
#include "cli/stages.h"

namespace emplace::cli {

// --placer(s), --scheduler(s) and seeds, as lists of runs.
// "all" stands for every placer; schedulers "all" for own, fifo, pct, msr.
std::vector<PlacerRun> make_runs(const std::string& placers, const std::string& schedulers,
                                 std::uint64_t first_seed, int seeds);

// Who the time of the budget is for.
enum class TimeFor { kEachRun, kAllRuns };

// Best first; ties in the order of the runs; all in the whole problem's numbers. Stops early, with
// what is done so far, when cancelled, or when the time of all runs is up. Each run's curves have a
// folder of their own where each run has all of the time, or several learn.
std::vector<RunResult> run_all(const Stages& stages, const std::vector<PlacerRun>& runs,
                               const BudgetArguments& budget, const LearningArguments& learning,
                               TimeFor time_for, const ObjectiveArguments& objective,
                               const Session& session);

// The highest of what the runs have proven.
LowerBound proven_bound(const std::vector<RunResult>& results);

// Says why nothing can fit and leaves the exit code, if that is proven before any search.
bool refuse_hopeless(const Stages& stages, Session& session);
// What --json prints of that.
std::string hopeless_json(const Stages& stages);

}  // namespace emplace::cli
