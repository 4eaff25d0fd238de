#include "run/whole_ways.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sim/overlap_slowdown.h"

#include "placer/run.h"

#include "placers/all.h"

#include "run/cpu_use.h"
#include "run/subset_problem.h"

namespace emplace {

int WayToRun::devices() const {
  return static_cast<int>(
      std::count_if(peaks.begin(), peaks.end(), [](Bytes peak) { return peak > 0; }));
}

Bytes WayToRun::largest_peak() const {
  return *std::max_element(peaks.begin(), peaks.end());
}

WayToRun undivided_way(const std::shared_ptr<const Problem>& problem, std::string name,
                       const Placement& placement, const Schedule& schedule,
                       double overlap_slowdown) {
  const Timeline timeline = overlap_slowdown > 1
                                ? with_slow_overlap(problem, placement, schedule, overlap_slowdown)
                                : Simulator(problem).run(placement, schedule);
  WayToRun way{.name = std::move(name), .step = timeline.step, .peaks = {}};
  way.fits = timeline.fits();
  for (const DeviceUse& use : timeline.devices) way.peaks.push_back(use.peak);
  way.moved = timeline.transfer_bytes;
  return way;
}

WayToRun placed_way(const std::shared_ptr<const Problem>& problem, const Budget& budget,
                    double overlap_slowdown) {
  const auto accelerators = without_cpus(problem, StepTime{});
  const bool leave_cpus_out = accelerators && accelerators->fits;
  PlaceContext placing(
      std::make_shared<const Simulator>(leave_cpus_out ? accelerators->problem : problem));
  const RunResult placed =
      run_placer(all_placers(), placing, {.placer = MethodSpec::parse("auto")}, budget);
  const Placement& found = placed.result.placement;
  return undivided_way(problem, "placement (auto)",
                       leave_cpus_out ? to_whole(found, accelerators->devices) : found,
                       placed.result.schedule, overlap_slowdown);
}

PlacedBeside::PlacedBeside(const std::shared_ptr<const Problem>& problem, const Budget& budget,
                           double overlap_slowdown)
    : cancelled_(budget.cancelled) {
  Budget own = budget;
  own.cancelled = &stopped_;
  way_ = std::async(std::launch::async, [problem, own, overlap_slowdown] {
    return placed_way(problem, own, overlap_slowdown);
  });
}

WayToRun PlacedBeside::take() {
  while (way_.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
    if (cancelled_ != nullptr && cancelled_->load()) stopped_ = true;
  }
  return way_.get();
}

}  // namespace emplace
