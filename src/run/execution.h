// A placement executed for real, beside what was predicted for it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/measurement.h"

namespace emplace {

// All ops of a type: what they took in a step, and what was predicted.
struct TypeTimes {
  std::string type;
  std::int64_t ops = 0;
  Nanoseconds measured = 0;
  Nanoseconds predicted = 0;
};

struct Execution {
  std::shared_ptr<const Problem> problem = {};
  Placement placement = {};
  MeasureSettings settings = {};
  Measurement measurement = {};
  Timeline measured = {};   // the step in the middle
  Timeline predicted = {};  // from the problem's op times
  // What the simulator says with the op times of this very run: how far it is off is the fault of
  // its rules, the rest that of op times.
  Nanoseconds oracle = 0;
  // How much longer work that is always the same took afterwards; nothing where it was not done.
  std::optional<double> drift = std::nullopt;
  std::vector<TypeTimes> types = {};  // by what is measured, the most first
  std::vector<std::string> warnings = {};

  bool failed() const { return measurement.failure.has_value(); }
  double predicted_ratio() const;  // predicted by measured
  double oracle_ratio() const;
};

// Everything on the device on which it is predicted to be done soonest, of those that it fits.
Placement on_one_device(const std::shared_ptr<const Problem>& problem);

// Throws an Error that names the device on which nothing can be executed, or the op that has no
// kernel. The laboratory's cluster is the problem's.
Execution execute(Laboratory& laboratory, const std::shared_ptr<const Problem>& problem,
                  const Placement& placement, const Schedule& schedule, MeasureSettings settings);

// The simulated step with these op times, where ops are placed.
Timeline simulate_with_times(const std::shared_ptr<const Problem>& problem,
                             const Placement& placement, const Schedule& schedule,
                             const std::vector<Nanoseconds>& op_times);

}  // namespace emplace
