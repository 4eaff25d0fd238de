// What several devices do alike in a plan.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cost/problem.h"

#include "tensor/partition_problem.h"
#include "tensor/plan.h"

namespace emplace {

// How many devices compute the same, on average over the time that the ops of the forward and the
// backward pass take on the device; 1 where all is divided.
double mean_copies(const PartitionInput& input, const Problem& problem, const Plan& plan,
                   DeviceId device);

// How many of these first levels divide no op but updates, though there are examples for everybody:
// their groups do the same on purpose.
std::size_t repeating_levels(const PartitionInput& input, const Plan& plan, std::size_t levels);

// Types of operators that everybody does whole: without a description, or without the attributes
// that it would need.
struct UndividedTypes {
  std::vector<std::string> undescribed, unattributed;
};
UndividedTypes undivided_types(const PartitionInput& input);

// What one of the groups of these first levels does.
Plan plan_of_one_group(const Plan& plan, std::size_t levels, const Workers& workers);

}  // namespace emplace
