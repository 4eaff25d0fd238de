// One placement, told to people and to programs.
#pragma once

#include <string>

#include "sim/simulator.h"

#include "bound/lower_bound.h"
#include "placer/run.h"

#include "cli/command.h"

namespace emplace::cli {

struct Explanation;

// Everything that is known of one placement.
struct Outcome {
  std::shared_ptr<const Simulator> simulator;
  Placement placement;
  Schedule schedule;
  Timeline timeline;
  LowerBound bound;  // of the period, or the step: of what fits, if this does, else of all
  std::optional<ThroughputResult> throughput = std::nullopt;  // when that is the objective
  int most_devices = 0;  // that may be used, which is what the bound is about; 0: all

  const Problem& problem() const { return simulator->problem(); }
  // Step time or period, whichever is the objective.
  Nanoseconds time() const { return throughput ? throughput->period : timeline.step; }
  double ratio_to_bound() const;
  // Fits, and no placement that fits is faster.
  bool optimal() const { return fits() && time() <= bound.step; }

  // In terms of the objective.
  bool fits() const;
  Bytes used(DeviceId device) const;
};

// Assesses placements of one problem; what they have in common is worked out once.
class Assessor {
 public:
  // `proven`, where there is one, is a bound of the time of every placement that fits.
  Assessor(std::shared_ptr<const Simulator> simulator, const ObjectiveArguments& objective,
           const LowerBound& proven = {});

  Outcome assess(Placement placement, Schedule schedule) const;

 private:
  std::shared_ptr<const Simulator> simulator_;
  ObjectiveArguments objective_;
  LowerBound bound_of_fitting_;
  LowerBound bound_of_all_;
};

// The object of docs/formats.md; `run` adds what `place` adds.
std::string to_json(const Outcome& outcome, const RunResult* run = nullptr,
                    const Explanation* explanation = nullptr);

// Step time, what bounds it, devices and channels.
std::string to_text(const Outcome& outcome);

// What is being worked on, and how its op times are known.
std::string describe_problem(const Problem& problem);

void write_placement(const std::string& path, const Outcome& outcome, const RunResult& run);
void write_trace(const std::string& path, const Outcome& outcome);

}  // namespace emplace::cli
