// Cuts on all levels at once, by the time of computing and moving. There are too many ways to cut
// an operator on several levels to weigh them all, so the ones that are weighed grow around the
// best known: those that plans at hand use and whatever differs from them on one level. Where all
// of them are few, all are weighed, and the result is the best there is.
#pragma once

#include <cstdint>
#include <memory>
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
  // Whether a weight, its gradient and the optimizer's state may lie in different parts, so that an
  // update is divided further than the weight.
  bool storage_apart = false;
  // Whether ops may be divided otherwise than those whose gradients they compute.
  bool free_backward = true;
};

struct JointCosts;

class JointSearch {
 public:
  // The context outlives it.
  JointSearch(const PartitionContext& context, const JointSearchSettings& settings);
  ~JointSearch();

  // Of the quickest round so far: another one would hardly end sooner. 0: there was none.
  double round_seconds() const;

  // How good the plan is by its own costs, `piece_time` and traffic on the links, is all that
  // counts; nothing is simulated. `memory_limit` is on what a worker keeps (kept_memory.h): the
  // plan stays within it where that is possible. `budget` has a limit. Costs that were computed
  // once are not computed again. The plan says what it costs, and the bound where all ways were
  // weighed. Nothing where no plan was found that can be lowered.
  std::optional<Plan> find(std::string method, const std::vector<Plan>& starts,
                           std::optional<Bytes> memory_limit, const Budget& budget, Rng rng);

 private:
  std::unique_ptr<JointCosts> costs_;
};

// How long the slowest worker's piece of an op of the class takes. `problem` is of the context's
// workers and of `input`, which is the context's in its classes or others.
std::int64_t piece_time(const PartitionContext& context, const PartitionInput& input,
                        PartitionProblem& problem, ClassId op, const Cuts& cuts);

}  // namespace emplace
