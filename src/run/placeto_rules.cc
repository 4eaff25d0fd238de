#include "run/placeto_rules.h"

#include <utility>
#include <vector>

#include "sim/placeto.h"

namespace emplace {

Evaluator::Measure measured_as_placeto(std::shared_ptr<const Simulator> simulator) {
  return [simulator = std::move(simulator)](const Placement& placement, const ReadyOrder&) {
    const Problem& problem = simulator->problem();
    const Timeline timeline = simulator->run(placement, {});
    const std::vector<Bytes> peaks = placeto_peaks(problem, placement, timeline);
    Evaluation value{placeto_makespan(problem, placement, timeline), 0};
    for (DeviceId device = 0; device < problem.num_devices(); ++device) {
      const Bytes memory = problem.cluster().device(device).memory;
      if (memory != kUnlimited && peaks[device] > memory) value.overflow += peaks[device] - memory;
    }
    return value;
  };
}

}  // namespace emplace
