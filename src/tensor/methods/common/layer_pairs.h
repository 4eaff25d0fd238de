// Layers cut alike in both directions, as systems do that know layers and not their gradients: an
// op that computes gradients of another is divided as that one is.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/partition_problem.h"
#include "tensor/plan.h"

#include "selection/selection_problem.h"

namespace emplace {

// Classes of ops. Variables are each other's counterparts where they index one dimension of a
// tensor that both touch, or of a tensor and its gradient.
struct LayerPair {
  ClassId forward;
  ClassId backward;
  // By the forward op's variable: the backward op's; kUncut where it has none.
  std::vector<std::int8_t> counterparts;
};

std::vector<LayerPair> layer_pairs(const PartitionInput& input);

// By the ways of the forward op (rows) and of the backward op: 0, or kForbidden where they are
// unlike on a level on which there is a counterpart. A row without any that is alike is free.
std::vector<std::int64_t> unlike_costs(const LayerPair& pair, const std::vector<Cuts>& forward,
                                       const std::vector<Cuts>& backward);

// The same as edges of a problem that was built with these ways.
void forbid_unlike(const std::vector<LayerPair>& pairs, const PartitionInput& input,
                   const Ways& ways, SelectionProblem& problem);

}  // namespace emplace
