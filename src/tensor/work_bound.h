// How short a step of any division of a graph among workers can be: they cannot compute sooner than
// their devices' best rates allow.
#pragma once

#include "base/units.h"

#include "tensor/topology.h"

namespace emplace {

// Every element of every op is computed by somebody. With weights y of the devices that sum to 1,
// the busiest of them works at least as long as the weighted sum of all loads, which is at least
// the sum over ops of the least weighted time. A part of an op lasts at least its share of what was
// measured or, where nothing was, of its FLOPs at the rate that kernels of its family reach on the
// whole op, and of its outputs at the highest bandwidth. `problem` has the ops whole.
Nanoseconds divided_work_bound(const Problem& problem, const WorkerDevices& on);

}  // namespace emplace
