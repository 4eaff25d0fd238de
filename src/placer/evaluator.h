// What placers ask for the value of a placement under the objective: step time and peaks, or period
// and what a stream keeps in memory. Thread-safe; counts the evaluations that a budget limits and
// remembers none of the answers.
//
// Where a scheduler was asked for, ready ops run in its order for the placement, whatever order a
// placer gives with it.
//
// Simulating a stream takes as long as some hundred steps. Where that is the rule, placers search
// by an estimate: one step's time shared by as many steps as memory holds, but not below the
// largest load. What does not fit by it does not fit; answers are valued exactly.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/objective.h"
#include "sim/simulator.h"
#include "sim/throughput.h"

#include "placer/scheduler.h"

namespace emplace {

class Evaluator {
 public:
  explicit Evaluator(std::shared_ptr<const Simulator> simulator, Objective objective = {});
  explicit Evaluator(std::shared_ptr<const Problem> problem, Objective objective = {});

  const Problem& problem() const { return simulator_->problem(); }
  const std::shared_ptr<const Simulator>& simulator() const { return simulator_; }
  const Objective& objective() const { return objective_; }

  // From now on ops run in this scheduler's order; throws an Error when there is none such. Not
  // while others evaluate.
  void order_by(std::string scheduler);
  const std::string& scheduler() const { return scheduler_; }
  // Whether a search is to look for the order of ops, too.
  bool order_is_free() const { return own_order() && objective_.order_matters(); }
  // Whether the order is another for every placement.
  bool order_follows_placement() const { return !own_order() && scheduler_ != "fifo"; }
  // The order that the placement is valued in: the scheduler's, else the one chosen for it.
  Schedule schedule_of(const Placement& placement, Schedule chosen = {}) const;

  // From now on steps are valued by this, one at a time: executed for real, say. Peaks are still
  // the simulator's.
  using Measure = std::function<Evaluation(const Placement&, const ReadyOrder&)>;
  void measure_with(Measure measure) { measure_ = std::move(measure); }
  bool measures() const { return static_cast<bool>(measure_); }
  const Measure& measure() const { return measure_; }

  Evaluation evaluate(const Placement& placement, const ReadyOrder& order = {});
  Evaluation evaluate(const Placement& placement, const Schedule& schedule) {
    return evaluate(placement, ReadyOrder(problem(), schedule));
  }
  // The same, with each device's peak.
  Evaluation evaluate(const Placement& placement, const ReadyOrder& order,
                      std::vector<Bytes>& peaks);
  // Where the step loses time, with each device's peak where it is asked for.
  std::vector<HotSpot> hot_spots(const Placement& placement, const ReadyOrder& order,
                                 std::vector<Bytes>* peaks = nullptr);
  // The value that is reported, with what each device needs where it is asked for.
  Evaluation evaluate_exactly(const Placement& placement, const Schedule& schedule,
                              std::vector<Bytes>* peaks = nullptr);
  // For those who evaluate many at once, and count them before they begin: how many there were is
  // then the same for whoever looks meanwhile, whatever the threads have done. The second has the
  // time at which each op starts in one step.
  Evaluation evaluate_uncounted(const Placement& placement);
  Evaluation evaluate_uncounted(const Placement& placement, std::vector<Nanoseconds>& starts);

  std::int64_t evaluations() const { return evaluations_.load(std::memory_order_relaxed); }
  // For what was evaluated by other means (sim/incremental.h), or is about to be.
  void count(std::int64_t more) { evaluations_.fetch_add(more, std::memory_order_relaxed); }

 private:
  class Lease;  // a workspace, for the length of one evaluation

  bool own_order() const { return scheduler_ == kOwnSchedule; }
  // Calls `body` with the order that the placement is valued in.
  template <class Body>
  auto in_order(const Placement& placement, const ReadyOrder& chosen, Body body) const {
    if (own_order()) return body(chosen);
    return body(ReadyOrder(problem(), schedule_of(placement)));
  }

  Evaluation evaluate_step(const Placement& placement, const ReadyOrder& order,
                           std::vector<Bytes>* peaks);
  Evaluation evaluate_stream(const Placement& placement, const ReadyOrder& order, Overlap overlap,
                             std::vector<Bytes>* memory);
  Evaluation measured(const Placement& placement, const ReadyOrder& order);
  // Of a stream that would be simulated.
  Evaluation estimate_stream(const Placement& placement, const ReadyOrder& order,
                             std::vector<Bytes>* memory);
  Evaluation valued(ThroughputResult result, std::vector<Bytes>* memory) const;
  Evaluation value_of(const Placement& placement, const ReadyOrder& order,
                      std::vector<Bytes>* peaks);

  std::shared_ptr<const Simulator> simulator_;
  Objective objective_;
  std::string scheduler_{kOwnSchedule};
  Measure measure_;
  std::mutex measuring_;
  std::atomic<std::int64_t> evaluations_{0};
  std::mutex mutex_;
  std::vector<Simulator::WorkspacePtr> idle_;
};

}  // namespace emplace
