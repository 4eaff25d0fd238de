// Rounds of a method until the budget is spent, with curves and checkpoints.
#pragma once

#include "base/rng.h"

#include "learn/methods/method.h"
#include "learn/train/environment.h"
#include "learn/train/learning_run.h"

namespace emplace::learn {

// The context's learning() says where curves and checkpoints go. Whatever was evaluated has been
// offered to the incumbent.
void train(Method& method, Environment& environment, Rng rng, const LearningRun& run);

}  // namespace emplace::learn
