// Another placer's work within a search, on part of its budget.
#pragma once

#include <string>
#include <vector>

#include <emplace/search.h>

#include "base/options.h"
#include "base/rng.h"

#include "placer/context.h"

namespace emplace {

// What is left of the budget when a share of the whole is kept back.
Budget without_share(const Budget& budget, const PlaceContext& context, double share);

// Runs the placer from `starts` until the budget, which is the whole search's, is spent; everything
// better than the incumbent is offered to it, and its evaluations are counted.
void run_nested(const std::string& key, const OptionValues& options, PlaceContext& context,
                const Budget& budget, const Rng& rng, std::vector<Solution> starts = {});

// What is left of the budget for large neighbourhoods around the incumbent's best, which there must
// be: groups that must move together.
void polish_best(PlaceContext& context, const Budget& budget, const Rng& rng);

}  // namespace emplace
