#include "run/whole_ways.h"

#include <utility>

#include "sim/overlap_slowdown.h"

#include "placer/run.h"

#include "placers/all.h"

#include "run/cpu_use.h"
#include "run/subset_problem.h"

namespace emplace {

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

}  // namespace emplace
