// Tofu's recursion (Wang et al. 2019, section 5): the workers are divided level by level, and on
// each level every tensor and every operator is cut along one dimension, so that what moves costs
// the least. The choice on a level is a dynamic program over the coarsened graph; here a
// strategy-selection problem, which the same eliminations solve, and which need not be a chain.
#pragma once

#include <functional>
#include <string>

#include <emplace/search.h>

#include "base/rng.h"

#include "tensor/context.h"
#include "tensor/plan.h"
#include "tensor/traffic.h"

namespace emplace {

// `traffic_among` says what moving costs among the groups that a level and those before it make;
// groups are the workers of its argument.
Plan cut_level_by_level(const PartitionContext& context, std::string method,
                        const std::function<Traffic(const Workers& groups)>& traffic_among,
                        const Budget& budget, Rng rng);

}  // namespace emplace
