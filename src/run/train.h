// One policy for many graphs and clusters: preparation of the tasks, and training.
#pragma once

#include <functional>
#include <string>

#include <emplace/train.h>

#include "learn/general/training.h"

namespace emplace {

// `on_progress` of the options is not used; `say` is told in a line what is being done, from any
// thread. Throws an Error when an option is wrong, or when the budget is spent before the first
// step.
TrainResult train_policy(const TrainOptions& options,
                         const std::function<void(const std::string&)>& say = {});

// The trainer's settings, from `policy`, `settings` and `device` of the options.
learn::MultiGraphSettings trainer_settings(const TrainOptions& options);

}  // namespace emplace
