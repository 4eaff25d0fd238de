// What a plan costs in the end: lowered and simulated.
#pragma once

#include <memory>
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
};

PlanOutcome evaluate_plan(const PartitionInput& input, const Plan& plan,
                          const std::shared_ptr<const Cluster>& cluster,
                          const std::vector<DeviceId>& devices, CostMode mode = CostMode::kAuto,
                          InPlace in_place = InPlace::kSums);

}  // namespace emplace
