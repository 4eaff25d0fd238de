// Cuts on all levels at once, by the time of computing and moving. There are too many ways to cut
// an operator on several levels to weigh them all, so the ones that are weighed grow around the
// best known: those that plans at hand use and whatever differs from them on one level. Where all
// of them are few, all are weighed, and the result is the best there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "base/rng.h"
#include "base/units.h"

#include "tensor/context.h"
#include "tensor/plan.h"

namespace emplace {

struct JointSearchSettings {
  // Of a class of ops or tensors, that are all weighed; beyond these, only those near the best
  // known.
  std::int64_t ways = 40;
  std::int64_t rounds = 8;
  // Whether forward ops may be divided by variables that they sum over.
  bool reductions = true;
  // How many times computing counts as much as moving: more than once, since moving is partly
  // hidden behind it.
  std::int64_t computing = 1;
  // Of what a worker keeps (weights, their gradients and state, what the backward pass reads): the
  // plan stays within it where that is possible.
  std::optional<Bytes> memory_limit = std::nullopt;
};

// How good the plan is by its own costs, `piece_time` and traffic on the links, is all that counts;
// nothing is simulated. `budget` has a limit.
Plan joint_search(const PartitionContext& context, std::string method,
                  const JointSearchSettings& settings, const std::vector<Plan>& starts,
                  const Budget& budget, Rng rng);

// How long the slowest worker's piece of an op of the class takes. `problem` is of the context's
// input and workers.
std::int64_t piece_time(const PartitionContext& context, PartitionProblem& problem, ClassId op,
                        const Cuts& cuts);

}  // namespace emplace
