// Steps whose ops are whole, which divisions are compared with.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "run/partition.h"

namespace emplace {

// Devices compute so many times as slowly while they send or receive.
WayToRun undivided_way(const std::shared_ptr<const Problem>& problem, std::string name,
                       const Placement& placement, const Schedule& schedule,
                       double overlap_slowdown);

// Op by op, by `auto`; on accelerators alone where a step fits those.
WayToRun placed_way(const std::shared_ptr<const Problem>& problem, const Budget& budget,
                    double overlap_slowdown);

// The same while something else is done. Whoever leaves without it stops it.
class PlacedBeside {
 public:
  PlacedBeside(const std::shared_ptr<const Problem>& problem, const Budget& budget,
               double overlap_slowdown);
  ~PlacedBeside() { stopped_ = true; }

  // Once; waits for it, or stops it where the budget is cancelled.
  WayToRun take();

 private:
  const std::atomic<bool>* cancelled_;  // the budget's
  std::atomic<bool> stopped_{false};
  std::future<WayToRun> way_;  // last, as its end waits for the thread
};

// What fits is better than what does not; else the shorter step is.
inline bool is_better(const WayToRun& way, const WayToRun& than) {
  return std::pair(!way.fits, way.step) < std::pair(!than.fits, than.step);
}

}  // namespace emplace
