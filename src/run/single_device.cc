#include "run/single_device.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace emplace {
namespace {

bool may_hold_everything(const Problem& problem, DeviceId device) {
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (!problem.allowed(group, device)) return false;
  }
  return true;
}

// Of devices that differ in nothing that matters to a single one, the first; the fastest first.
std::vector<DeviceId> distinct_devices(const Problem& problem, const std::vector<DeviceId>& among) {
  const StringPool& strings = problem.graph().strings();
  std::set<std::tuple<std::string, std::string, Bytes, Nanoseconds, std::string>> seen;
  std::vector<std::pair<double, DeviceId>> found;
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    if (!among.empty() && std::find(among.begin(), among.end(), id) == among.end()) continue;
    const Device& device = problem.cluster().device(id);
    // Measured times may be those of a device, by its name.
    const std::string own_times = strings.find(device.name) ? device.name : "";
    if (!may_hold_everything(problem, id)) continue;
    if (!seen.emplace(device.kind, device.slowdown.to_string(), device.memory, device.gap,
                      own_times)
             .second) {
      continue;
    }
    double total = 0;
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      total += static_cast<double>(problem.duration(op, id));
    }
    found.emplace_back(total, id);
  }
  std::sort(found.begin(), found.end());
  std::vector<DeviceId> devices;
  for (const auto& [total, id] : found) devices.push_back(id);
  return devices;
}

}  // namespace

SingleDevices try_single_devices(Evaluator& evaluator, const std::vector<DeviceId>& among) {
  const Problem& problem = evaluator.problem();
  SingleDevices result;
  Bytes largest = -1;
  for (const DeviceId id : distinct_devices(problem, among)) {
    // What did not fit on a larger device will not on this one.
    const Bytes memory = problem.cluster().device(id).memory;
    if (memory <= largest) continue;
    largest = memory;
    std::vector<Bytes> peaks;
    const Evaluation value =
        evaluator.evaluate_exactly(Placement(problem.num_ops(), id), {}, &peaks);
    const SingleDevice one{id, value, peaks[id], memory};
    if (!result.fastest) result.fastest = one;
    if (value.fits()) {
      result.fitting = one;
      break;
    }
  }
  return result;
}

}  // namespace emplace
