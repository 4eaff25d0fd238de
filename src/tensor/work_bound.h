// How short a step of any division of a graph among workers can be: they cannot compute sooner than
// the shortest pieces of every op allow.
#pragma once

#include "base/units.h"

#include "tensor/partition_problem.h"
#include "tensor/topology.h"

namespace emplace {

// With weights y of the devices that sum to 1, the busiest of them works at least as long as the
// weighted sum of all loads.
//
// - Every worker has a piece of every op, and an op can be cut in so many ways: the weighted sum of
//   its pieces' times is at least that of the best of them.
// - Where there are too many ways, or none is certain (sums of partial results are added where they
//   are): every element is computed by somebody, in at least its share of what was measured or,
//   where nothing was, of its FLOPs at the rate that kernels of its family reach on the whole op,
//   and of its outputs at the highest bandwidth.
//
// `problem` has the input's ops whole.
Nanoseconds divided_work_bound(const PartitionInput& input, const Problem& problem,
                               const WorkerDevices& on);

// The second alone, for every op.
Nanoseconds divided_rate_bound(const Problem& problem, const WorkerDevices& on);

}  // namespace emplace
