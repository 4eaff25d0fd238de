// How short a step of any division of a graph among workers can be: by what they compute
// (tensor/work_bound.h) and what then has to pass between them.
#pragma once

#include "base/units.h"

#include "tensor/evaluate.h"
#include "tensor/partition_problem.h"
#include "tensor/topology.h"

namespace emplace {

// At least divided_work_bound. `problem` has the input's ops whole; `costs` says what its pieces
// and transfers cost. What there is no time for within the limit is left out, down to
// divided_rate_bound.
Nanoseconds divided_step_bound(const PartitionInput& input, const Problem& problem,
                               const WorkerDevices& on, const PlanCosts& costs = {},
                               const Budget* limit = nullptr);

}  // namespace emplace
