// --measure and --environment: placements that are executed while one is looked for.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "run/measured_choice.h"

namespace emplace::cli {

struct MeasuringArguments {
  int measure = 0;  // so many are executed; 0: none
  std::string environment = "simulated";
  std::string deadline;

  void add_to(Command command);
  bool measures_costs() const { return environment == "measured"; }
};

// --deadline, and what it means: nanoseconds, 0 where it is not given.
void add_deadline(Command command, std::string& deadline, const std::string& otherwise);
Nanoseconds deadline_of(const std::string& text);
// --numbers, of which run/measurement.h says what they mean.
void add_numbers(Command command, std::string& numbers);

// This machine, where it is asked for.
class Measuring {
 public:
  // Throws an Error when the placers or the objective are not such as can be measured, or nothing
  // can be executed on one of the devices.
  Measuring(const MeasuringArguments& arguments, const SubsetProblems& problems,
            const std::vector<PlacerRun>& runs, const Session& session);

  // What the search is to keep, and how it values placements.
  void prepare(PortfolioRequest& request);
  // Executes the most promising answers, with progress. The best of them is the first of the
  // results then.
  void choose(PortfolioResult& found);

  const std::vector<MeasuredCandidate>& tried() const { return tried_; }
  // Of the best, ", of 3 executed placements the fastest: heft, 1.2 ms measured"; nothing where it
  // was not measured.
  std::string choice(const RunResult& best) const;

 private:
  MeasuringArguments arguments_;
  std::shared_ptr<const Simulator> whole_;
  int most_devices_;
  std::string scheduler_;
  std::shared_ptr<const Problem> problem_;
  std::unique_ptr<Laboratory> laboratory_;
  std::atomic<int> steps_{0};
  std::vector<MeasuredCandidate> tried_;
};

}  // namespace emplace::cli
