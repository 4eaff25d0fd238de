// Evaluates sampled placements on threads of its own while the policy computes, and keeps the best.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "placer/context.h"

namespace emplace::learn {

// What came of a sampled placement.
struct SampleOutcome {
  Nanoseconds step = 0;
  Bytes overflow = 0;
  bool valid = true;  // needs no link that does not exist

  bool fits() const { return valid && overflow == 0; }
};

struct OutcomeWithStarts {
  SampleOutcome outcome = {};
  std::vector<Nanoseconds> starts = {};  // by op; 0 where the placement is not valid
};

class Environment {
 public:
  // `origin` is what the incumbent is told.
  Environment(PlaceContext& context, const Budget& budget, std::string origin);

  const Problem& problem() const { return context_.problem(); }
  PlaceContext& context() { return context_; }
  const Budget& budget() const { return budget_; }
  // How many more placements may be evaluated, at most `wanted`.
  std::int64_t affordable(std::int64_t wanted) const;
  bool spent() const { return budget_.spent(context_.evaluations()); }

  // Begins at once, and counts them all. The outcomes are in the order of the placements; the incumbent hears of them
  // when they are asked for.
  std::future<std::vector<SampleOutcome>> evaluate(std::vector<Placement> placements);
  // The same, with the time at which each op starts in a step.
  std::future<std::vector<OutcomeWithStarts>> evaluate_with_starts(
      std::vector<Placement> placements);

  // Time that evaluations took, on one thread each, since the last call.
  double take_evaluation_seconds();
  // What it would have taken to measure the placements whose outcomes were asked for, as
  // TrainingPoint has it.
  Nanoseconds simulated_time() const { return simulated_time_; }

 private:
  template <class Result, class Evaluate, class OutcomeOf>
  std::future<std::vector<Result>> begin(std::vector<Placement> placements,
                                         const Evaluate& evaluate, const OutcomeOf& outcome_of);
  // `value_of` asks the evaluator.
  template <class ValueOf>
  SampleOutcome evaluate_one(const Placement& placement, const ValueOf& value_of);
  void offer(Placement& placement, const SampleOutcome& outcome);

  PlaceContext& context_;
  Budget budget_;
  std::string origin_;
  bool all_linked_;
  std::atomic<std::int64_t> evaluation_nanoseconds_{0};
  Nanoseconds simulated_time_ = 0;
};

}  // namespace emplace::learn
