#include "tensor/evaluate.h"

#include <algorithm>

#include "sim/overlap_slowdown.h"

namespace emplace {

PlanOutcome evaluate_plan(const PartitionInput& input, const Plan& plan,
                          const std::shared_ptr<const Cluster>& cluster,
                          const std::vector<DeviceId>& devices, const PlanCosts& costs) {
  std::vector<std::string> names;
  for (const DeviceId device : devices) names.push_back(cluster->device(device).name);
  Network network(plan.workers, *cluster, devices, costs.collectives.get());
  LoweredGraph lowered = lower(input.graph, input.descriptions, plan, names, &network);
  PlanOutcome outcome;
  outcome.moved = lowered.moved;
  outcome.unmeasured = network.unmeasured();
  outcome.problem = compile(std::make_shared<const Graph>(std::move(lowered.graph)), cluster,
                            CompileOptions{.cost = costs.mode, .in_place = costs.in_place});
  for (const Worker worker : lowered.worker_of) outcome.placement.push_back(devices[worker]);
  if (costs.overlap_slowdown > 1) {
    const Timeline timeline =
        with_slow_overlap(outcome.problem, outcome.placement, {}, costs.overlap_slowdown);
    outcome.value.step = timeline.step;
    for (const DeviceUse& use : timeline.devices) {
      outcome.peaks.push_back(use.peak);
      outcome.value.overflow += std::max<Bytes>(0, use.peak - use.capacity);
    }
    return outcome;
  }
  const Simulator simulator(outcome.problem);
  const auto workspace = simulator.make_workspace();
  outcome.peaks.resize(cluster->num_devices());
  outcome.value = simulator.evaluate(outcome.placement, ReadyOrder(), *workspace, outcome.peaks);
  return outcome;
}

}  // namespace emplace
