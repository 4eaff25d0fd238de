// Placements to begin a search from: what the classical placers say, quickly.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "base/rng.h"

#include "placer/context.h"

namespace emplace {

// The context's own starts and the placements of classical placers (single, heft, expert, metis,
// ...), each with the best of its own order of ops and every scheduler's, or in the order of the
// scheduler that was asked for, valid and valued, no
// placement twice, the best first. At most `at_most` and at least one; the context's own are
// never the ones left out. All of them have been offered to the incumbent.
//
// Of a search's later parts (SearchPart), the context's own starts are all there are.
//
// Spends up to a quarter of what is left of the budget, plus what finishing takes: placers whose
// time grows faster than the graph are left out where it is large, and once the share is spent no
// further one begins. Without any budget left: the context's starts, else one placement. Under an
// evaluation budget the answer does not depend on the budget's threads.
//
// Throws the placers' Error where all of them fail, as they do when no devices that are linked with
// each other can hold every op, and the context has no start.
std::vector<Solution> classical_starts(PlaceContext& context, const Budget& budget, Rng rng,
                                       std::size_t at_most);

// The same of these placers (specs) alone, the cheapest of them first; all that are found are
// returned.
std::vector<Solution> starts_of(std::span<const std::string> placers, PlaceContext& context,
                                const Budget& budget, Rng rng);

// The placement in the order, of its own schedule and every scheduler's, that is best for it; the
// budget is asked before each evaluation but the first. Where the order does not matter, or a
// scheduler was asked for, the first is the only one.
Solution with_best_order(Evaluator& evaluator, const Budget& budget, Solution solution);

}  // namespace emplace
