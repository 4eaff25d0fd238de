// What a partition method is given: a graph and those who share it, how to value plans, plans to
// begin from, and where to put what it finds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cost/problem.h"

#include "sim/simulator.h"

#include "tensor/evaluate.h"
#include "tensor/partition_problem.h"
#include "tensor/piece_times.h"
#include "tensor/plan.h"
#include "tensor/topology.h"

#include "search/context.h"

namespace emplace {

struct PlanSolution {
  Plan plan;  // which says what found it
  Evaluation value = {};
  Bytes moved = 0;  // between workers
};

class PartitionContext : public SearchContext<PlanSolution> {
 public:
  // `problem` is the input's graph on the cluster that the workers are on, with its ops whole;
  // `costs` says what their pieces cost. They write over inputs where the problem says so.
  // `starts` are plans of this input for these workers. The input outlives the context.
  PartitionContext(const PartitionInput& input, std::shared_ptr<const Problem> problem,
                   WorkerDevices on, PlanCosts costs = {}, const std::vector<Plan>& starts = {});

  const PartitionInput& input() const { return input_; }
  const Problem& problem() const { return *problem_; }
  const Cluster& cluster() const { return problem_->cluster(); }
  const WorkerDevices& on() const { return on_; }
  const Workers& workers() const { return on_.workers; }
  const std::vector<DeviceId>& devices() const { return on_.devices; }  // by worker
  const PlanCosts& costs() const { return costs_; }

  // Of the input's ops on these workers; computed when first asked for.
  const PieceTimes& piece_times() const;

  // Lowers and simulates the plan, from any thread. Throws an Error when it leaves a worker without
  // a part.
  PlanSolution evaluate(Plan plan);
  // The same, and offers it to the incumbent.
  Evaluation try_plan(Plan plan);
  // How many plans were evaluated, and how long the slowest evaluation took.
  std::int64_t evaluations() const { return evaluations_.load(std::memory_order_relaxed); }
  double evaluation_seconds() const { return evaluation_seconds_.load(std::memory_order_relaxed); }

  // What became of the plans that were tried, by the method that the plan says, in order.
  struct Tried {
    std::string method;
    PlanOutcome outcome;  // without the problem and the placement, unless it is the best
    Plan plan;
  };
  std::vector<Tried> tried() const;

  // Until when methods may compute costs (PartitionProblem); nullptr: as long as they need.
  const Budget* limit() const { return limit_ ? &*limit_ : nullptr; }
  void set_limit(std::optional<Budget> limit) {
    limit_ = std::move(limit);
    if (limit_) limit_->evaluations.reset();  // costs are none
  }

 private:
  PlanOutcome outcome_of(const Plan& plan);

  const PartitionInput& input_;
  std::shared_ptr<const Problem> problem_;
  WorkerDevices on_;
  PlanCosts costs_;
  std::atomic<std::int64_t> evaluations_{0};
  std::atomic<double> evaluation_seconds_{0};
  std::optional<Budget> limit_;
  mutable std::once_flag timed_;
  mutable std::unique_ptr<const PieceTimes> piece_times_;
  mutable std::mutex mutex_;
  std::vector<Tried> tried_;
  std::size_t best_tried_ = 0;
};

}  // namespace emplace
