// The best that a search has found so far, and what it has proven: shared by its threads, and what
// is left when it is stopped.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "sim/placement.h"
#include "sim/simulator.h"

#include "search/lower_bound.h"

namespace emplace {

struct Solution {
  Placement placement;
  Schedule schedule = {};
  Evaluation value = {};
  std::string origin = {};  // what found it
};

class Incumbent {
 public:
  // Called, from one thread at a time, after each improvement of the solution or the bound.
  using Listener = std::function<void(const Incumbent&)>;
  void listen(Listener listener) { listener_ = std::move(listener); }

  // Keeps the solution if it is better than what there is; whether it was kept.
  bool offer(Solution solution);
  // Keeps the bound if it is higher.
  void raise(const LowerBound& bound);

  // Thread-safe copies.
  std::optional<Solution> best() const;
  std::optional<Evaluation> value() const;
  LowerBound bound() const;
  // Fits and is no higher than the bound.
  bool optimal() const;

 private:
  mutable std::recursive_mutex mutex_;  // a listener may look at what it is told of
  std::optional<Solution> best_;
  LowerBound bound_;
  Listener listener_;
};

}  // namespace emplace
