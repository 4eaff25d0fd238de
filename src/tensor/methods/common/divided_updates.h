// Storage apart from use: weights stay as a plan keeps them, and their updates are divided among
// those who keep the same. Each worker then has a part of the optimizer's state, changes its part
// of the weights and sends it to the others.
#pragma once

#include "tensor/partition_problem.h"
#include "tensor/plan.h"

namespace emplace {

enum class GradientStorage {
  kAsWeights,  // each worker reads its part of a gradient that it has whole (ZeRO's first stage)
  kInParts,    // gradients are reduced to the parts that updates read (its second)
};

// The plan with every described update of a weight divided on the levels that leave the weight
// whole, as far as it has elements.
Plan with_divided_updates(const PartitionInput& input, Plan plan, GradientStorage gradients);

}  // namespace emplace
