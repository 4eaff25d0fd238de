// What placers run on: the whole problem, or, when only some devices may be used, the problem on
// each of several sets of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/simulator.h"

#include "bound/lower_bound.h"
#include "search/incumbent.h"
#include "run/subset_problem.h"

#include "cli/command.h"

namespace emplace::cli {

// --devices, --start.
struct StageArguments {
  int devices = 0;  // at most so many are used; 0: all
  std::vector<std::string> starts;

  void add_to(CLI::App& command);
};

struct Stage {
  std::shared_ptr<const Simulator> simulator;
  DeviceSet devices;             // the whole problem's numbers of the stage's devices
  std::vector<Solution> starts;  // in the stage's numbers
  LowerBound bound;              // of placements on these devices that fit
};

class Stages {
 public:
  // Throws an Error when a start is wrong: names what the problem does not have, breaks a rule, or
  // uses more devices than it may.
  Stages(const LoadedProblem& loaded, const StageArguments& arguments,
         const ObjectiveArguments& objective);

  const std::shared_ptr<const Simulator>& whole() const { return whole_; }
  const std::vector<Stage>& list() const { return stages_; }
  // Best first, in the whole problem's numbers.
  const std::vector<Solution>& starts() const { return starts_; }
  // Whether the lowest of the stages' bounds holds for every placement that is wanted.
  bool complete() const { return complete_; }
  // Why nothing fits, where that is proven before any search.
  const std::optional<std::string>& why_nothing_fits() const { return why_nothing_fits_; }

 private:
  void read_starts(const StageArguments& arguments, const Objective& objective);
  void split(const LoadedProblem& loaded, DeviceId count, const ObjectiveArguments& objective);

  std::shared_ptr<const Simulator> whole_;
  std::vector<Solution> starts_;
  std::vector<Stage> stages_;
  bool complete_ = true;
  std::optional<std::string> why_nothing_fits_;
};

}  // namespace emplace::cli
