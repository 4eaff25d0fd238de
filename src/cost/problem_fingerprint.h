// What two problems must agree on for a placement to have the same value, and the same bound, in
// both.
#pragma once

#include "base/fingerprint.h"

#include "cost/problem.h"

namespace emplace {

// All that the simulator, the bounds and the searches read of a problem: its ops and their edges,
// memory, durations, what must share a device and which may be used, devices and links. Not names.
void add_problem(Fingerprint& fingerprint, const Problem& problem);

}  // namespace emplace
