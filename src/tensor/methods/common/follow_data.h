// Examples are divided, and every op as what it reads is: data parallelism, with weights everywhere
// or in parts.
#pragma once

#include <cstddef>
#include <string>

#include "tensor/context.h"

namespace emplace {

enum class WeightStorage {
  kEverywhere,  // gradients are added up everywhere
  // In parts, with their gradients and the optimizer's state. What ops need of them is fetched when
  // it is needed (ZeRO's third stage, FSDP), or once a step and kept (its second).
  kInParts,
  kInPartsHeld,
};

// Examples are divided on all levels from the given one on, and from a later one where there are
// not enough of them; groups of the levels before do the same.
Plan follow_data(const PartitionContext& context, std::string method, WeightStorage storage,
                 std::size_t first_level = 0);

}  // namespace emplace
