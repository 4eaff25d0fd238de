#include "tensor/context.h"

#include <algorithm>
#include <utility>

#include "tensor/budgets.h"

namespace emplace {
namespace {

// Which costs the search nothing.
std::vector<PlanSolution> valued(const PartitionInput& input,
                                 const std::shared_ptr<const Problem>& problem,
                                 const std::vector<DeviceId>& devices, const PlanCosts& costs,
                                 const std::vector<Plan>& plans) {
  const std::shared_ptr<const Cluster> cluster(problem, &problem->cluster());
  std::vector<PlanSolution> solutions;
  for (const Plan& plan : plans) {
    const PlanOutcome outcome = evaluate_plan(input, plan, cluster, devices, costs);
    solutions.push_back({.plan = plan, .value = outcome.value, .moved = outcome.moved});
  }
  return solutions;
}

PlanCosts costs_in(const Problem& problem, PlanCosts costs) {
  costs.in_place = problem.compile_options().in_place;
  return costs;
}

}  // namespace

PartitionContext::PartitionContext(const PartitionInput& input,
                                   std::shared_ptr<const Problem> problem, WorkerDevices on,
                                   PlanCosts costs, const std::vector<Plan>& starts)
    : SearchContext(valued(input, problem, on.devices, costs_in(*problem, costs), starts)),
      input_(input),
      problem_(std::move(problem)),
      on_(std::move(on)),
      costs_(costs_in(*problem_, std::move(costs))) {}

const PieceTimes& PartitionContext::piece_times() const {
  constexpr double kShare = 0.5;  // of the time that there is for costs
  std::call_once(timed_, [&] {
    std::optional<Budget> limit;
    if (limit_) limit = budget_part(*limit_, kShare * seconds_left(*limit_).value_or(0));
    piece_times_ =
        std::make_unique<const PieceTimes>(input_, *problem_, on_, limit ? &*limit : nullptr);
  });
  return *piece_times_;
}

PlanOutcome PartitionContext::outcome_of(const Plan& plan) {
  const Budget clock;
  evaluations_.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<const Cluster> cluster(problem_, &problem_->cluster());
  PlanOutcome outcome = evaluate_plan(input_, plan, cluster, on_.devices, costs_);
  evaluation_seconds_.store(std::max(evaluation_seconds(), clock.elapsed_seconds()),
                            std::memory_order_relaxed);
  return outcome;
}

PlanSolution PartitionContext::evaluate(Plan plan) {
  const PlanOutcome outcome = outcome_of(plan);
  return {.plan = std::move(plan), .value = outcome.value, .moved = outcome.moved};
}

Evaluation PartitionContext::try_plan(Plan plan) {
  PlanOutcome outcome = outcome_of(plan);
  const Evaluation value = outcome.value;
  incumbent().offer({.plan = plan, .value = value, .moved = outcome.moved});
  const std::lock_guard lock(mutex_);
  const bool best = tried_.empty() || value < tried_[best_tried_].outcome.value;
  // Divided graphs are large.
  PlanOutcome& other = best && !tried_.empty() ? tried_[best_tried_].outcome : outcome;
  if (!best || !tried_.empty()) {
    other.problem = nullptr;
    other.placement.clear();
  }
  if (best) best_tried_ = tried_.size();
  tried_.push_back({plan.method, std::move(outcome), std::move(plan)});
  return value;
}

std::vector<PartitionContext::Tried> PartitionContext::tried() const {
  const std::lock_guard lock(mutex_);
  return tried_;
}

}  // namespace emplace
