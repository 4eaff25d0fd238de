// Placements that are chosen by executing them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "placer/context.h"

#include "run/measurement.h"
#include "run/portfolio.h"

namespace emplace {

struct MeasuredCandidate {
  Solution solution;
  Nanoseconds predicted = 0;
  TimeSpread measured = {};
  std::string failure = {};  // why it could not be executed; empty: it was

  bool failed() const { return !failure.empty(); }
};

// The most promising answers that differ: what a portfolio found on its way, every device alone,
// and quick splits. By predicted step, at most `count`, those that fit, on at most `most_devices`
// (0: any number). Where several are wanted, the best single device is one of them: predictions are
// surest of it. Under a scheduler all of them are in its order.
std::vector<Solution> promising_answers(const std::shared_ptr<const Simulator>& simulator,
                                        const PortfolioResult& found, int count,
                                        int most_devices = 0,
                                        const std::string& scheduler = std::string(kOwnSchedule));

// All of them executed, in turn and twice, since a machine's speed changes. The fastest first; when
// cancelled, only those that were executed until then. Without a deadline in the settings, a step
// that takes 50 times as long as predicted, and half a minute, has failed.
std::vector<MeasuredCandidate> measure_answers(Laboratory& laboratory,
                                               const std::shared_ptr<const Problem>& problem,
                                               std::vector<Solution> answers,
                                               MeasureSettings settings);

// Costs for searches: a step is executed as ColocRL did it, 15 times, of which the first 5 do not
// count. What fails, runs out of memory or passes the deadline, as above, does not fit. From any
// thread, one at a time. The laboratory outlives it.
Evaluator::Measure measured_costs_of(Laboratory& laboratory,
                                     const std::shared_ptr<const Problem>& problem,
                                     MeasureSettings settings = {.steps = 10, .warm_up = 5});

}  // namespace emplace
