// The placement of the least largest load, which is the period of a stream that is not simulated:
// the search (search.h) and the bound (bound.h) together, so that an answer that is proven to be
// the best ends both.
#pragma once

#include <emplace/search.h>

#include "base/rng.h"

#include "placer/context.h"
#include "placer/placer.h"

#include "stream/model.h"

namespace emplace {

// Begins from the context's starts, tells its incumbent of every improvement of answer and bound,
// and returns the incumbent's best; a note says where it does not fit. Ends when that is proven to
// be the best, or when the budget is spent, of which an evaluation is one move proposed or one
// round of pricing. Under an evaluation budget the answer depends on the seed alone.
//
// Throws an Error where no set of mutually linked devices can hold everything.
PlaceResult solve_stream(PlaceContext& context, const StreamPeriod& objective, const Budget& budget,
                         Rng rng);

// The same for what devices hold by `model`; the bound counts what they hold by `relaxed`, which
// must not be more than the true rule does. Values in the incumbent are those of `model`.
void search_loads(PlaceContext& context, const StreamModel& model, const StreamModel& relaxed,
                  const Budget& budget, Rng rng);

}  // namespace emplace
