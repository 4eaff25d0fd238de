// Several placers on one problem, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "placer/run.h"

#include "dist/crew.h"
#include "dist/member.h"
#include "run/assessment.h"
#include "run/learning_files.h"
#include "run/placer_runs.h"
#include "run/run_status.h"
#include "run/search_course.h"
#include "run/subset_problems.h"

namespace emplace {

// Who the time of the budget is for.
enum class TimeFor { kEachRun, kAllRuns };

struct PortfolioRequest {
  std::vector<PlacerRun> runs;
  Budget budget = {};
  TimeFor time_for = TimeFor::kAllRuns;
  LearningSettings learning = {};
  bool keep_runners_up = false;
  bool keep_courses = false;
  // What a placement of the whole problem costs, in place of the simulator's word, whose bounds do
  // not hold then. Of several ranks, each has its own.
  Evaluator::Measure measure = {};
  // Whether the other ranks measure the same; else what is measured is not shared with them.
  bool ranks_measure = false;
  // Others to share the runs with, of which each reads the same problems and asks for the same.
  dist::Crew* crew = nullptr;
  // Into how many a search is divided under an evaluation budget; 0: as many as ranks, or fewer
  // where that would be too few evaluations for each.
  std::size_t islands = 0;
  // Samples of a placer that learns are valued here, not by ranks, where that takes less.
  double least_shared_seconds = 0.005;
};

struct PortfolioResult {
  // Best first; ties in the order of the runs; all in the whole problem's numbers. Never empty.
  std::vector<RunResult> results;
  // Of placers that could not cope, and of files that could not be written, for people.
  std::vector<std::string> warnings;
  // Where they were to be kept: what was the best for a while, the latest first.
  std::vector<Solution> runners_up = {};
  // Where they were to be kept: of every run that searched, in the order in which they ran.
  std::vector<SearchCourse> courses = {};

  const RunResult& best() const { return results.front(); }
  // The highest of what the runs have proven.
  LowerBound proven_bound() const;
};

// Runs placers on every one of the problems, best first. `status`, which may be looked at from
// another thread meanwhile, outlives it.
class Portfolio {
 public:
  // Throws an Error when files of placers that learn cannot be used.
  Portfolio(const SubsetProblems& problems, PortfolioRequest request);
  ~Portfolio();

  RunStatus& status();
  // Ranks that have nothing to do, since the search has fewer islands.
  std::size_t idle_ranks() const;
  // Stops early, with what is done so far, when cancelled, or when the time of all runs is up.
  // Where each has the time, heuristics go first, and are run all the same. Throws an Error when no
  // run gives a result.
  PortfolioResult run();
  // On the ranks that help the one that runs: does what it is told, and returns when all is done.
  void serve(dist::Member& member);

 private:
  class Runner;
  std::unique_ptr<Runner> runner_;
};

// Of results, best first, each placer's and seed's first alone: its best order of ops.
void keep_best_orders(std::vector<RunResult>& results);

// The best result, assessed against the best bound that is known.
Assessor assessor_of(const SubsetProblems& problems, const PortfolioResult& result);
Assessment assess(const Assessor& assessor, const SubsetProblems& problems,
                  const RunResult& result);

// What quick placers that like to split (expert, metis, heft) make of the problem, for comparison;
// nothing where it is too large to be quick, or has one device.
std::vector<RunResult> quick_splits(const std::shared_ptr<const Simulator>& simulator,
                                    const Objective& objective,
                                    const std::string& scheduler = std::string(kOwnSchedule));

}  // namespace emplace
