// One placement, with everything that is known of it.
#pragma once

#include <memory>
#include <optional>

#include <emplace/granularity.h>
#include <emplace/search.h>

#include "sim/objective.h"
#include "sim/simulator.h"
#include "sim/throughput.h"
#include "sim/timeline.h"

#include "run/rates.h"

namespace emplace {

struct Assessment {
  std::shared_ptr<const Simulator> simulator;
  Objective objective;
  Placement placement;
  Schedule schedule;
  Timeline timeline;
  LowerBound bound;  // of the period, or the step: of what fits, if this does, else of all
  std::optional<ThroughputResult> throughput = std::nullopt;  // when that is the objective
  // What the bound is about: how many devices may be used, 0: all; that CPUs are not to be; what
  // is kept whole.
  int most_devices = 0;
  bool leaves_cpus_out = false;
  Granularity granularity = Granularity::kOp;
  Rates rates = {};  // of work, on the devices that it uses

  const Problem& problem() const { return simulator->problem(); }
  // Step time or period, whichever is the objective.
  Nanoseconds time() const { return throughput ? throughput->period : timeline.step; }
  double ratio_to_bound() const;
  // Fits, and no placement that fits is faster.
  bool optimal() const { return fits() && time() <= bound.step; }

  // In terms of the objective.
  bool fits() const;
  Bytes used(DeviceId device) const;
  Nanoseconds busy(DeviceId device) const;
  // Of the device nearest to its limit, 0..1 and above.
  double fullest_memory() const;
};

// Whether ops that take time are on a CPU.
bool has_work_on_cpus(const Assessment& assessment);
// Whether they are on one that has accelerators beside it, whose kernels it also
// has to start: that is not simulated.
bool uses_cpu(const Assessment& assessment);

// Assesses placements of one problem; what they have in common is worked out once.
class Assessor {
 public:
  // `bound`, where there is one, is a bound of the time of every placement that fits; `terms` say
  // what a step is worth, what the graph says where there are none.
  Assessor(std::shared_ptr<const Simulator> simulator, const Objective& objective,
           LowerBound bound = {}, std::optional<StepTerms> terms = std::nullopt);

  Assessment assess(Placement placement, Schedule schedule) const;

 private:
  std::shared_ptr<const Simulator> simulator_;
  Objective objective_;
  LowerBound bound_of_fitting_;
  StepTerms terms_;
};

}  // namespace emplace
