#include "tensor/context.h"

#include <utility>

#include "tensor/evaluate.h"

namespace emplace {
namespace {

PlanSolution valued(const PartitionInput& input, const std::shared_ptr<const Problem>& problem,
                    const std::vector<DeviceId>& devices, CostMode mode, Plan plan) {
  const std::shared_ptr<const Cluster> cluster(problem, &problem->cluster());
  const PlanOutcome outcome = evaluate_plan(input, plan, cluster, devices, mode);
  return {.plan = std::move(plan), .value = outcome.value, .moved = outcome.moved};
}

// Which costs the search nothing.
std::vector<PlanSolution> valued(const PartitionInput& input,
                                 const std::shared_ptr<const Problem>& problem,
                                 const std::vector<DeviceId>& devices, CostMode mode,
                                 const std::vector<Plan>& plans) {
  std::vector<PlanSolution> solutions;
  for (const Plan& plan : plans) {
    solutions.push_back(valued(input, problem, devices, mode, plan));
  }
  return solutions;
}

}  // namespace

PartitionContext::PartitionContext(const PartitionInput& input,
                                   std::shared_ptr<const Problem> problem, WorkerDevices on,
                                   CostMode mode, const std::vector<Plan>& starts)
    : SearchContext(valued(input, problem, on.devices, mode, starts)),
      input_(input),
      problem_(std::move(problem)),
      on_(std::move(on)),
      mode_(mode) {}

PlanSolution PartitionContext::evaluate(Plan plan) {
  evaluations_.fetch_add(1, std::memory_order_relaxed);
  return valued(input_, problem_, on_.devices, mode_, std::move(plan));
}

Evaluation PartitionContext::try_plan(Plan plan) {
  PlanSolution solution = evaluate(std::move(plan));
  const Evaluation value = solution.value;
  incumbent().offer(std::move(solution));
  return value;
}

}  // namespace emplace
