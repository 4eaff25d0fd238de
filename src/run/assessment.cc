#include "run/assessment.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

#include "bound/lower_bound.h"
#include "run/subset_problem.h"

namespace emplace {

bool Assessment::fits() const {
  for (DeviceId device = 0; device < problem().num_devices(); ++device) {
    if (used(device) > problem().cluster().device(device).memory) return false;
  }
  return true;
}

double Assessment::ratio_to_bound() const {
  if (time() == bound.step) return 1;
  return static_cast<double>(time()) / static_cast<double>(std::max<Nanoseconds>(1, bound.step));
}

Bytes Assessment::used(DeviceId device) const {
  return throughput ? throughput->memory[device] : timeline.devices[device].peak;
}

Nanoseconds Assessment::busy(DeviceId device) const {
  return throughput ? throughput->device_loads[device] : timeline.devices[device].busy;
}

double Assessment::fullest_memory() const {
  double fullest = 0;
  for (DeviceId device = 0; device < problem().num_devices(); ++device) {
    const Bytes capacity = problem().cluster().device(device).memory;
    if (capacity == kUnlimited || used(device) == 0) continue;
    fullest = std::max(fullest, static_cast<double>(used(device)) / static_cast<double>(capacity));
  }
  return fullest;
}

Assessor::Assessor(std::shared_ptr<const Simulator> simulator, const Objective& objective,
                   LowerBound bound, std::optional<StepTerms> terms)
    : simulator_(std::move(simulator)),
      objective_(objective),
      bound_of_fitting_(bound.step > 0 ? std::move(bound)
                                       : lower_bound(simulator_->problem(), objective)),
      terms_(terms ? std::move(*terms)
                   : StepTerms{.work = work_of(simulator_->problem().graph())}) {}

Assessment Assessor::assess(Placement placement, Schedule schedule) const {
  Assessment result{simulator_, objective_, std::move(placement), std::move(schedule), {}, {}};
  result.timeline = simulator_->run(result.placement, result.schedule);
  objective_.match([](const StepTime&) {},
                   [&](const StreamPeriod& stream) {
                     result.throughput = stream_throughput(
                         result.problem(), result.placement,
                         ReadyOrder(result.problem(), result.schedule), stream.overlap);
                   });
  if (result.fits()) {
    result.bound = bound_of_fitting_;
  } else {
    result.bound =
        objective_.match([&](const StepTime&) { return lower_bound(result.problem(), false); },
                         [&](const StreamPeriod&) { return period_lower_bound(result.problem()); });
  }
  EMPLACE_CHECK(result.bound.step <= result.time());
  result.rates = rates_of(terms_, result.problem().cluster(),
                          used_devices(result.problem(), result.placement), result.time());
  return result;
}

namespace {

bool works(const Assessment& assessment, bool cpus) {
  const Cluster& cluster = assessment.problem().cluster();
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    if (assessment.busy(id) > 0 && cluster.is_cpu(id) == cpus) return true;
  }
  return false;
}

}  // namespace

bool has_work_on_cpus(const Assessment& assessment) {
  return works(assessment, true);
}

bool uses_cpu(const Assessment& assessment) {
  return has_work_on_cpus(assessment) && works(assessment, false);
}

}  // namespace emplace
