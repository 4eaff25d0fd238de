#include "placer/linked_devices.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"

namespace emplace {
namespace {

bool linked_both_ways(const Cluster& cluster, DeviceId a, DeviceId b) {
  return cluster.link(a, b) != nullptr && cluster.link(b, a) != nullptr;
}

// The distinct sets of devices that groups may use, with one group of each.
std::vector<std::pair<std::span<const DeviceId>, GroupId>> distinct_device_sets(
    const Problem& problem) {
  std::vector<std::pair<std::span<const DeviceId>, GroupId>> result;
  std::set<const DeviceId*> seen;  // groups with one set share its storage
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    const std::span<const DeviceId> devices = problem.allowed_devices(group);
    if (seen.insert(devices.data()).second) result.emplace_back(devices, group);
  }
  return result;
}

}  // namespace

std::vector<double> total_durations(const Problem& problem) {
  std::vector<double> totals(problem.num_devices(), 0);
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      totals[device] += static_cast<double>(problem.duration(op, device));
    }
    totals[device] = std::max(totals[device], 1.0);
  }
  return totals;
}

std::vector<DeviceId> mutually_linked_devices(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  std::vector<DeviceId> by_speed(cluster.num_devices());
  std::iota(by_speed.begin(), by_speed.end(), DeviceId{0});
  if (cluster.fully_linked()) return by_speed;

  const std::vector<double> totals = total_durations(problem);
  std::stable_sort(by_speed.begin(), by_speed.end(),
                   [&](DeviceId a, DeviceId b) { return totals[a] < totals[b]; });
  const auto device_sets = distinct_device_sets(problem);
  const auto serves_all = [&](const std::vector<DeviceId>& clique) {
    return std::all_of(device_sets.begin(), device_sets.end(), [&](const auto& entry) {
      return std::any_of(entry.first.begin(), entry.first.end(), [&](DeviceId device) {
        return std::find(clique.begin(), clique.end(), device) != clique.end();
      });
    });
  };

  std::vector<DeviceId> best;
  double best_speed = 0;
  for (const DeviceId start : by_speed) {
    std::vector<DeviceId> clique{start};
    double speed = 1 / totals[start];
    for (const DeviceId device : by_speed) {
      const bool joins =
          device != start && std::all_of(clique.begin(), clique.end(), [&](DeviceId member) {
            return linked_both_ways(cluster, device, member);
          });
      if (!joins) continue;
      clique.push_back(device);
      speed += 1 / totals[device];
    }
    if (speed <= best_speed || !serves_all(clique)) continue;
    best_speed = speed;
    best = clique;
  }
  if (best.empty()) {
    fail_input(
        "cluster '{}': found no devices that are all linked with each other and that may run every "
        "op; expected links between the devices that the ops name",
        cluster.name());
  }
  std::sort(best.begin(), best.end());
  return best;
}

std::string unlinked_note(const Problem& problem, const std::vector<DeviceId>& used) {
  std::vector<std::string> left_out;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    if (std::find(used.begin(), used.end(), device) != used.end()) continue;
    left_out.push_back(problem.cluster().device(device).name);
  }
  return fmt::format("not used, as links between devices are missing: {}",
                     fmt::join(left_out, ", "));
}

}  // namespace emplace
