// Trains one policy on many problems at once: the sum over graphs of what each would have it learn
// (GDP-batch; Placeto's workers on a family; one encoder for many graphs, as Mars has it for one).
#pragma once

#include <string>
#include <vector>

#include <emplace/search.h>

#include "base/rng.h"

#include "learn/general/training.h"

namespace emplace::learn {

// `begin_from` may be a policy file's bytes; `card` is what the new file says of itself.
TrainedPolicy train_on_graphs(std::vector<TrainingTask> tasks, const MultiGraphSettings& settings,
                              const std::string& begin_from, const std::string& card,
                              const Budget& budget, const Rng& rng, const TrainingHooks& hooks);

}  // namespace emplace::learn
