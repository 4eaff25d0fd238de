// Storage apart from use: weights stay as a plan keeps them, and their updates are divided among
// those who keep the same. Each worker then has a part of the optimizer's state, changes its part
// of the weights and sends it to the others.
#pragma once

#include <cstddef>
#include <optional>

#include "tensor/partition_problem.h"
#include "tensor/plan.h"

namespace emplace {

enum class GradientStorage {
  kAsWeights,  // each worker reads its part of a gradient that it has whole (ZeRO's first stage)
  kInParts,    // gradients are reduced to the parts that updates read (its second)
};

// How an op is divided so that each worker reads its part of an input that is cut so; nothing where
// a dimension that is cut has no variable of its own.
std::optional<Cuts> cuts_to_read(const tdl::Description& description, std::size_t input,
                                 const Cuts& dimensions);

// The plan with every described update of a weight divided on the levels that leave the weight
// whole, as far as it has elements.
Plan with_divided_updates(const PartitionInput& input, Plan plan, GradientStorage gradients);

}  // namespace emplace
