// What a plan costs in the end: lowered and simulated.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "cluster/cluster.h"

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/simulator.h"

#include "tensor/lower.h"
#include "tensor/partition_problem.h"

namespace emplace {

struct PlanOutcome {
  std::shared_ptr<const Problem> problem;  // the lowered graph on the cluster
  Placement placement;                     // of its ops: everyone's pieces on its own device
  Evaluation value;
  std::vector<Bytes> peaks;  // by device
  Bytes moved = 0;           // between workers
  // Among how many devices it exchanges what was not measured, where collectives are.
  std::set<int> unmeasured;
};

// What pieces and transfers are taken to cost.
struct PlanCosts {
  CostMode mode = CostMode::kAuto;
  InPlace in_place = InPlace::kSums;
  // Devices compute so many times as slowly while they send or receive (sim/overlap_slowdown.h).
  double overlap_slowdown = 1;
  std::shared_ptr<const CollectiveTimes> collectives = nullptr;  // as far as they were measured
};

PlanOutcome evaluate_plan(const PartitionInput& input, const Plan& plan,
                          const std::shared_ptr<const Cluster>& cluster,
                          const std::vector<DeviceId>& devices, const PlanCosts& costs = {});

}  // namespace emplace
