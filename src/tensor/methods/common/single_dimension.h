// Cuts of one dimension (or variable), the same on all levels, or on the inner ones.
#pragma once

#include <string>
#include <vector>

#include "tensor/context.h"
#include "tensor/partition_problem.h"
#include "tensor/plan.h"

namespace emplace {

// For each class, the ways that cut one dimension on all levels from the given one on; the uncut
// one where there is no such way, and, where it is wanted, beside them.
Ways single_dimension_ways(PartitionProblem& problem, const Classes& classes, bool with_uncut,
                           std::size_t first_level = 0);

// The plan that keeps tensors so, by class, and divides every op in the best of its ways for that.
Plan with_best_ops(const PartitionContext& context, PartitionProblem& problem, std::string method,
                   const std::vector<Cuts>& tensors, const std::vector<std::vector<Cuts>>& op_ways);

}  // namespace emplace
