// One placement, told to people and to programs.
#pragma once

#include <string>

#include "cli/command.h"
#include "placer/bound.h"
#include "placer/run.h"
#include "sim/simulator.h"

namespace emplace::cli {

// Everything that is known of one placement.
struct Outcome {
  std::shared_ptr<const Problem> problem;
  Placement placement;
  Schedule schedule;
  Timeline timeline;
  LowerBound bound;
  std::optional<ThroughputResult> throughput;  // when that is the objective

  // In terms of the objective.
  bool fits() const;
  Bytes used(DeviceId device) const;
};

Outcome assess(std::shared_ptr<const Problem> problem, Placement placement, Schedule schedule,
               const ObjectiveArguments& objective);

// The object of docs/formats.md; `run` adds what `place` adds.
std::string to_json(const Outcome& outcome, const RunResult* run = nullptr);

// Step time, what bounds it, devices and channels.
std::string to_text(const Outcome& outcome);

// What is being worked on, and how its op times are known.
std::string describe_problem(const Problem& problem);

// What is short where, and by how much; empty when the outcome fits.
std::string describe_shortfall(const Outcome& outcome);

void write_placement(const std::string& path, const Outcome& outcome, const RunResult& run);
void write_trace(const std::string& path, const Outcome& outcome);

}  // namespace emplace::cli
