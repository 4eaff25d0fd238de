// Of the times of a reduced problem, those that can decide anything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "selection/reduced_problem.h"

namespace emplace {

// Whether the most that the nodes can use at each time is more than there is.
std::vector<char> binding_times(std::span<const ReducedNode> nodes,
                                std::span<const std::int64_t> slack);

// Leaves out the times that do not bind and those at which another one allows no more, with the
// pieces of usage that only they had.
void keep_binding_times(ReducedProblem& problem);

}  // namespace emplace
