// Placements of the least period where streams are simulated (sim/stream_run.h).
#pragma once

#include <emplace/search.h>

#include "base/rng.h"

#include "placer/context.h"

#include "stream/model.h"

namespace emplace {

// What devices hold for a simulated stream, by group: what lasts, and `share` times what a group's
// part of one step holds for a while.
StreamModel estimated_model(PlaceContext& context, double share);
// What lasts alone, which every placement that fits has room for: bounds by it are bounds.
StreamModel resident_model(const Problem& problem);

// Searches for the least largest load under ever other estimates of what steps in flight hold, and
// simulates what it finds; the incumbent's values are exact. Begins from the context's starts and
// the incumbent's best, of which there must be one, and raises the bound.
void solve_simulated_stream(PlaceContext& context, const Budget& budget, const Rng& rng);

// Values the solution exactly, and offers it.
void offer_exactly(PlaceContext& context, Solution solution);

}  // namespace emplace
