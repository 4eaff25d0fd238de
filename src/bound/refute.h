// Destructive lower bounds (Klein and Scholl, "Computing lower bounds by destructive improvement",
// EJOR 112(2), 1999): suppose that a step is shorter than some time, conclude what must then share
// a device and which classes of devices are out of question, and see whether anything is left.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/units.h"

#include "bound/alive.h"
#include "bound/ends.h"

namespace emplace {

// Whether no step is shorter than `limit`. Otherwise `ends` is left with what holds of every step
// that is. `held` is what is in memory at certain moments. Looks at the nearest `ancestors` of
// each op, which takes most of the time (0: does not). `go_on` may stop it, with what it has
// concluded by then.
bool refutes(BoundEnds& ends, Nanoseconds limit, std::span<const HeldAt> held,
             std::size_t ancestors, const std::function<bool()>& go_on);

}  // namespace emplace
