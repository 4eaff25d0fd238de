// Kernels that write their result over an input which nobody else will look at: what
// docs/simulator.md calls in place.
#pragma once

#include <cstddef>
#include <functional>

#include <emplace/problem.h>

#include "base/ids.h"

#include "graph/graph.h"

#include "exec/kernel.h"

namespace emplace::exec {

// The result is then inputs[over], bit for bit what the op's own kernel makes.
using Overwrite = std::function<void(Tensors& inputs, std::size_t over)>;

// Empty where the op has none, or `mode` leaves it alone. All inputs then have the result's shape
// and type, and any of them may be the one.
Overwrite overwrite_kernel(const Graph& graph, OpId op, InPlace mode);

}  // namespace emplace::exec
