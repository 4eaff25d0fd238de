// Rounds of a method until the budget is spent, with curves and checkpoints.
#pragma once

#include <optional>
#include <string>

#include "base/rng.h"

#include "sim/placement.h"

#include "learn/methods/method.h"
#include "learn/train/environment.h"

namespace emplace::learn {

struct TrainerSettings {
  std::string key;                           // of the placer: a checkpoint must be of the same
  std::optional<Placement> begin_from = {};  // a placement to imitate first
};

// The context's learning() says where curves and checkpoints go. Whatever was evaluated has been
// offered to the incumbent.
void train(Method& method, Environment& environment, Rng rng, const TrainerSettings& settings);

}  // namespace emplace::learn
