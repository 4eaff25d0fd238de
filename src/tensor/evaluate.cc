#include "tensor/evaluate.h"

namespace emplace {

PlanOutcome evaluate_plan(const PartitionInput& input, const Plan& plan,
                          const std::shared_ptr<const Cluster>& cluster,
                          const std::vector<DeviceId>& devices, CostMode mode, InPlace in_place) {
  std::vector<std::string> names;
  for (const DeviceId device : devices) names.push_back(cluster->device(device).name);
  Network network(plan.workers, *cluster, devices);
  LoweredGraph lowered = lower(input.graph, input.descriptions, plan, names, &network);
  PlanOutcome outcome;
  outcome.moved = lowered.moved;
  outcome.problem = compile(std::make_shared<const Graph>(std::move(lowered.graph)), cluster,
                            CompileOptions{.cost = mode, .in_place = in_place});
  for (const Worker worker : lowered.worker_of) outcome.placement.push_back(devices[worker]);
  const Simulator simulator(outcome.problem);
  const auto workspace = simulator.make_workspace();
  outcome.peaks.resize(cluster->num_devices());
  outcome.value = simulator.evaluate(outcome.placement, ReadyOrder(), *workspace, outcome.peaks);
  return outcome;
}

}  // namespace emplace
