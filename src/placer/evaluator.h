// What placers ask for the value of a placement under the objective: step time and peaks, or period
// and what a stream keeps in memory. Thread-safe; counts the evaluations that a budget limits and
// remembers none of the answers; a search tells its incumbent what is worth keeping.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/objective.h"
#include "sim/simulator.h"

#include "search/incumbent.h"
#include "search/learning_hooks.h"

namespace emplace {

class Evaluator {
 public:
  // `starts` are answers to begin from, where a placer can: valid placements of the problem.
  explicit Evaluator(std::shared_ptr<const Simulator> simulator, Objective objective = {},
                     std::vector<Solution> starts = {});
  explicit Evaluator(std::shared_ptr<const Problem> problem, Objective objective = {},
                     std::vector<Solution> starts = {});

  const Problem& problem() const { return simulator_->problem(); }
  const std::shared_ptr<const Simulator>& simulator() const { return simulator_; }
  const Objective& objective() const { return objective_; }
  // Valued under the objective.
  const std::vector<Solution>& starts() const { return starts_; }
  // For placers that learn; to be set before one runs.
  Training& training() { return training_; }
  Incumbent& incumbent() { return incumbent_; }
  const Incumbent& incumbent() const { return incumbent_; }

  Evaluation evaluate(const Placement& placement, const ReadyOrder& order = {});
  Evaluation evaluate(const Placement& placement, const Schedule& schedule) {
    return evaluate(placement, ReadyOrder(problem(), schedule));
  }
  // The same, with each device's peak.
  Evaluation evaluate(const Placement& placement, const ReadyOrder& order,
                      std::vector<Bytes>& peaks);
  // The same, with the time at which each op starts in one step.
  Evaluation evaluate_with_starts(const Placement& placement, std::vector<Nanoseconds>& starts);

  std::int64_t evaluations() const { return evaluations_.load(std::memory_order_relaxed); }
  // For what was evaluated by other means (sim/incremental.h).
  void count(std::int64_t more) { evaluations_.fetch_add(more, std::memory_order_relaxed); }

 private:
  class Lease;  // a workspace, for the length of one evaluation

  Evaluation evaluate_stream(const Placement& placement, std::vector<Bytes>* memory) const;

  std::shared_ptr<const Simulator> simulator_;
  Objective objective_;
  std::vector<Solution> starts_;
  Incumbent incumbent_;
  Training training_;
  std::atomic<std::int64_t> evaluations_{0};
  std::mutex mutex_;
  std::vector<Simulator::WorkspacePtr> idle_;
};

}  // namespace emplace
