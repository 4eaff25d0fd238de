// A period that no placement of a stream is below: the bound that every answer is shown with.
//
// Set covering (Dantzig and Wolfe 1960; Farley, Operations Research 38(5), 1990). Every device's
// content has a load within the period. Give each item a value: where all contents together can
// not reach the sum of the values, no placement has that period. The best values are the dual
// prices of a linear program over contents, which are found one by one (bound_pricing.h).
#pragma once

#include <functional>
#include <string>

#include "base/units.h"

#include "placer/budget.h"

#include "placers/stream/model.h"

namespace emplace {

struct StreamBound {
  Nanoseconds period = 0;
  std::string reason;
};

// At most the period of every placement that fits. `upper` is a period that is of no more interest,
// such as that of a known placement: the result is `upper` when it is proven that no placement is
// below it. Becomes better, and calls `on_improvement` each time, until the budget is spent (an
// evaluation is one round of pricing), `upper` is reached, or the method can do no more.
// Integers decide: whatever floating point contributes are values of items, and any values will do.
StreamBound bound_stream(const StreamModel& model, Nanoseconds upper, const Budget& budget,
                         const std::function<void(const StreamBound&)>& on_improvement = {});

}  // namespace emplace
