// Distributed training as ColocRL (Mirhoseini et al. 2017) and HDP (2018) have it: controllers,
// each with a copy of the policy, sample placements, have them evaluated and find a gradient; a
// parameter server steps along the gradients as they come; a controller fetches the parameters
// before each round. So a gradient is of parameters that others may have changed since.
//
// Under a budget of evaluations the order is fixed, as if all controllers took the same time:
// round k of all is controller k mod N's, begins from the parameters after the first k - N + 1
// gradients, and its own is the next after k - 1. So the result depends on the seed and the number
// of controllers alone, and with one controller it is that of `sample_and_learn`. Rank 0 has the
// parameters then. Under a budget of time gradients are applied as they arrive, by shards on all
// ranks.
//
// A round is a task for any rank. Without others, threads of this process are the ranks.
#pragma once

#include <emplace/search.h>

#include "base/rng.h"

#include "learn/system.h"
#include "learn/train/environment.h"
#include "learn/train/learning_run.h"
#include "search/learning_ranks.h"

namespace emplace::learn {

// In place of `train`. The policy is made from `weights`; `rng` is for the rest. Whatever was
// evaluated has been offered to the incumbent. The context's learning() says where checkpoints go:
// one under a budget of evaluations has all that the next rounds begin from, so that whoever goes
// on ends as if nothing had happened; one under time has what rank 0 knows of the shards.
void train_with_controllers(const SamplingSystem& system, Environment& environment,
                            const Rng& weights, Rng rng, const LearningRun& run);

// On another rank of such a training: does what the task says.
void help_controllers(const SamplingSystem& system, PlaceContext& context, const Budget& budget,
                      const LearningRun& run, const Rng& weights, LearningTask& task);

}  // namespace emplace::learn
