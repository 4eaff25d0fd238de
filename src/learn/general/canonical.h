// Placements as examples: devices that are alike may change places without a difference, and a
// policy can only imitate one of the ways.
#pragma once

#include "cost/problem.h"

#include "sim/placement.h"

namespace emplace::learn {

// The placement with devices that are alike (every op takes as long, the same memory, the same ops
// allowed) in the order in which the forward pass comes to them.
Placement in_order(const Problem& problem, const Placement& placement);

}  // namespace emplace::learn
