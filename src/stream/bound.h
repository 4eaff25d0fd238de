// A period that no placement of a stream is below: the bound that every answer is shown with.
//
// Set covering (Dantzig and Wolfe 1960; Farley, Operations Research 38(5), 1990). Every device's
// content has a load within the period. Give each item a value: where all contents together can
// not reach the sum of the values, no placement has that period. The best values are the dual
// prices of a linear program over contents, which are found one by one (bound_pricing.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "base/units.h"

#include "stream/bound_classes.h"
#include "stream/bound_covering.h"
#include "stream/model.h"

namespace emplace {

struct StreamBound {
  Nanoseconds period = 0;
  std::string reason;
};

// At most the period of every placement that fits; becomes better step by step.
// Integers decide: whatever floating point contributes are values of items, and any values will do.
class StreamBounder {
 public:
  // Begins with the bound that needs no covering (bound/lower_bound.h).
  explicit StreamBounder(const StreamModel& model);
  ~StreamBounder();

  const StreamBound& bound() const { return bound_; }

  // Whether a step could improve it. `upper` is a period that is of no more interest, such as that
  // of a known placement that fits; it may only fall. The bound is `upper` once it is proven that
  // no placement that fits is below it.
  bool open(Nanoseconds upper) const;
  // Goes on for a while, or until the budget is spent, of which an evaluation is a round of
  // pricing.
  void step(Nanoseconds upper, const Budget& budget);

  std::int64_t rounds() const { return rounds_; }
  std::int64_t cells() const;  // of tables filled so far: the effort
  // No placement fits, whatever its period. The bound says nothing then.
  bool nothing_fits() const { return nothing_fits_; }

 private:
  Nanoseconds most(Nanoseconds upper) const;
  bool outdated(Nanoseconds most) const;
  std::unique_ptr<StreamCovering> make_covering(Nanoseconds limit, bool count_memory);
  void use(std::unique_ptr<StreamCovering> next, Nanoseconds limit, bool count_memory);
  void take_bound();
  void finish_covering();

  const StreamModel& model_;
  StreamBound bound_;
  bool possible_ = true;  // to do better
  bool nothing_fits_ = false;
  std::vector<DeviceClass> classes_;
  std::unique_ptr<StreamCovering> covering_;
  Nanoseconds limit_ = 0;     // of the covering
  bool with_memory_ = false;  // the covering counts it
  bool exhausted_ = false;    // nothing more follows from the covering
  std::int64_t rounds_ = 0;
  std::int64_t earlier_cells_ = 0;  // of earlier coverings
};

}  // namespace emplace
