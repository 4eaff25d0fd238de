#include "run/cpu_use.h"

#include <algorithm>

#include "placer/evaluator.h"

#include "run/portfolio.h"
#include "run/single_device.h"

namespace emplace {
namespace {

DeviceSet accelerators_of(const Cluster& cluster) {
  DeviceSet devices;
  for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
    if (!cluster.is_cpu(device) || cluster.device(device).free_communication) {
      devices.push_back(device);
    }
  }
  return devices;
}

bool serve_all(const Problem& problem, const DeviceSet& devices) {
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (std::none_of(devices.begin(), devices.end(),
                     [&](DeviceId device) { return problem.allowed(group, device); })) {
      return false;
    }
  }
  return true;
}

bool fits_quickly(const std::shared_ptr<const Problem>& problem, const Objective& objective) {
  const auto simulator = std::make_shared<const Simulator>(problem);
  Evaluator evaluator(simulator, objective);
  if (try_single_devices(evaluator).fitting) return true;
  const std::vector<RunResult> tried = quick_splits(simulator, objective);
  return std::any_of(tried.begin(), tried.end(),
                     [](const RunResult& result) { return result.evaluation.fits(); });
}

}  // namespace

std::optional<WithoutCpus> without_cpus(const std::shared_ptr<const Problem>& whole,
                                        const Objective& objective,
                                        const std::vector<Solution>& starts) {
  DeviceSet devices = accelerators_of(whole->cluster());
  if (devices.empty() || devices.size() == whole->num_devices()) return std::nullopt;
  if (!serve_all(*whole, devices)) return std::nullopt;
  for (const Solution& start : starts) {
    if (!to_subset(start.placement, devices)) return std::nullopt;
  }
  auto own = compile_on(whole, devices);
  const bool fits = fits_quickly(own, objective);
  return WithoutCpus{std::move(own), std::move(devices), fits};
}

}  // namespace emplace
