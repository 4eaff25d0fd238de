// What no placement can beat, and whether any can fit: proven without a search.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <emplace/search.h>

#include "base/units.h"

#include "cost/problem.h"

#include "sim/objective.h"

namespace emplace {

// At most the step time of every placement: what the longest path costs with its transfers, or the
// work between the first and the last ops spread over the devices as well as their speeds allow.
// With `fitting_only`, of every placement that fits: devices too small for an op's inputs and
// outputs then do not count for it. Nearly linear in the size of the graph.
LowerBound lower_bound(const Problem& problem, bool fitting_only = true);

// `lower_bound` for placements that fit, and better the longer it may work. `upper` is a step time
// that is of no more interest, such as that of a known placement: the result is `upper` when it is
// proven that no placement is below it. Calls `on_improvement` with each better bound, until the
// budget is spent (an evaluation is one round over the graph), `upper` is reached, or nothing more
// can be concluded.
LowerBound improve_bound(const Problem& problem, Nanoseconds upper, const Budget& budget,
                         const std::function<void(const LowerBound&)>& on_improvement = {});

// At most the period of every placement's stream, whatever overlaps: the total work spread over the
// devices, or the longest group of ops that must share one.
LowerBound period_lower_bound(const Problem& problem);

// Of placements that fit, whatever the objective.
LowerBound lower_bound(const Problem& problem, const Objective& objective);

// How a device's memory is counted (docs/simulator.md): over time, or all at once in a stream.
enum class MemoryRule { kStep, kStream };

// Why no placement can fit, with the shortfall; nothing when that is not proven.
std::optional<std::string> why_nothing_fits(const Problem& problem,
                                            MemoryRule rule = MemoryRule::kStep);

}  // namespace emplace
