#include "learn/general/canonical.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "learn/units/coordinates.h"
#include "learn/units/groupings.h"

namespace emplace::learn {
namespace {

bool alike(const Problem& problem, DeviceId a, DeviceId b) {
  if (problem.cluster().device(a).memory != problem.cluster().device(b).memory) return false;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (problem.duration(op, a) != problem.duration(op, b)) return false;
  }
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (problem.allowed(group, a) != problem.allowed(group, b)) return false;
  }
  return true;
}

// By device: the mean place of what is there, by time; those without anything come last.
std::vector<double> mean_places(const Problem& problem, const Placement& placement) {
  const UnitGraph units = group_by_colocation(problem);
  const Coordinates line =
      coordinates_of(units, order_along(units, Line::kModules), kept_bytes(units));
  std::vector<double> sum(problem.num_devices());
  std::vector<double> weight(problem.num_devices());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const auto time = static_cast<double>(problem.mean_duration(op));
    sum[placement[op]] += time * line.time[units.unit_of_op(op)];
    weight[placement[op]] += time;
  }
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    sum[device] = weight[device] > 0 ? sum[device] / weight[device] : 2;
  }
  return sum;
}

}  // namespace

Placement in_order(const Problem& problem, const Placement& placement) {
  const std::vector<double> places = mean_places(problem, placement);
  std::vector<DeviceId> renamed(problem.num_devices());
  std::vector<bool> done(problem.num_devices(), false);
  for (DeviceId first = 0; first < problem.num_devices(); ++first) {
    if (done[first]) continue;
    std::vector<DeviceId> same;
    for (DeviceId other = first; other < problem.num_devices(); ++other) {
      if (!done[other] && alike(problem, first, other)) same.push_back(other);
    }
    std::vector<DeviceId> by_place = same;
    std::stable_sort(by_place.begin(), by_place.end(),
                     [&](DeviceId a, DeviceId b) { return places[a] < places[b]; });
    for (std::size_t i = 0; i < same.size(); ++i) {
      renamed[by_place[i]] = same[i];
      done[same[i]] = true;
    }
  }
  Placement result = placement;
  for (DeviceId& device : result) device = renamed[device];
  return result;
}

}  // namespace emplace::learn
