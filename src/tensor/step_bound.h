// How short a step of any division of a graph among workers can be: by what they compute
// (tensor/work_bound.h) and what then has to pass between them.
#pragma once

#include <cstdint>

#include "base/units.h"

#include "tensor/evaluate.h"
#include "tensor/partition_problem.h"
#include "tensor/topology.h"

namespace emplace {

// Whether a bound counts what has to be sent beside what is computed.
enum class SendingInBound : std::uint8_t {
  kCounted,   // as the links say
  kMeasured,  // no: collectives were measured, and may be sooner than the links say
  kNoTime,    // no: the time was over
  kNowhere,   // no: of no level is it known how much that is
};

struct StepBound {
  Nanoseconds step = 0;
  SendingInBound sending = SendingInBound::kNowhere;
};

// At least divided_work_bound. `problem` has the input's ops whole; `costs` says what its pieces
// and transfers cost. What there is no time for within the limit is left out, down to
// divided_rate_bound.
StepBound divided_step_bound(const PartitionInput& input, const Problem& problem,
                             const WorkerDevices& on, const PlanCosts& costs = {},
                             const Budget* limit = nullptr);

}  // namespace emplace
