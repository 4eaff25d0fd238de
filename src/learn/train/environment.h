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

  // Begins at once, and counts them all. The outcomes are in the order of the placements; the
  // incumbent hears of them when they are asked for.
  std::future<std::vector<SampleOutcome>> evaluate(std::vector<Placement> placements);
  // The same, with the time at which each op starts in a step.
  std::future<std::vector<OutcomeWithStarts>> evaluate_with_starts(
      std::vector<Placement> placements);

  // Of samples that were evaluated elsewhere: counts them, and offers the one that is given, of
  // this index.
  void hear(const std::vector<SampleOutcome>& outcomes, std::size_t index, Placement placement);

  // Time that evaluations took since the last call, on one thread each; where others help, until
  // all were done.
  double take_evaluation_seconds();
  // What it would have taken to measure the placements whose outcomes were asked for, as
  // TrainingPoint has it.
  Nanoseconds simulated_time() const { return simulated_time_; }

 private:
  std::vector<ValuedSample> value(const std::vector<Placement>& placements, bool with_starts);
  // `result_of` makes a result of a valued sample.
  template <class ResultOf>
  auto begin(std::vector<Placement> placements, bool with_starts, const ResultOf& result_of);
  void offer(Placement& placement, const SampleOutcome& outcome);

  PlaceContext& context_;
  Budget budget_;
  std::string origin_;
  bool all_linked_;
  std::atomic<std::int64_t> evaluation_nanoseconds_{0};
  Nanoseconds simulated_time_ = 0;
};

}  // namespace emplace::learn
