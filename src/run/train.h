// One policy for many graphs and clusters: preparation of the tasks, and training.
#pragma once

#include <functional>
#include <string>

#include <emplace/train.h>

#include "dist/crew.h"
#include "dist/member.h"

namespace emplace {

// `on_progress` of the options is not used; `say` is told in a line what is being done, from any
// thread. With a crew, its ranks share the work; the policy does not depend on them. Throws an
// Error when an option is wrong, or when the budget is spent before the first step.
TrainResult train_policy(const TrainOptions& options,
                         const std::function<void(const std::string&)>& say = {},
                         dist::Crew* crew = nullptr);

// On the other ranks, with the same options, of which files to write are not used.
void serve_training(const TrainOptions& options, dist::Member& member);

}  // namespace emplace
