#include "tensor/topology.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/union_find.h"

#include "sim/simulator.h"

namespace emplace {
namespace {

std::vector<DeviceId> sharing_devices(const Cluster& cluster) {
  std::vector<DeviceId> all, accelerators;
  for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
    all.push_back(device);
    if (!cluster.is_cpu(device)) accelerators.push_back(device);
  }
  return accelerators.empty() ? all : accelerators;
}

std::int64_t bandwidth(const Cluster& cluster, DeviceId a, DeviceId b) {
  const Link* there = cluster.link(a, b);
  const Link* back = cluster.link(b, a);
  if (there == nullptr || back == nullptr) return 0;
  return std::min(there->bandwidth, back->bandwidth);
}

// Devices that are linked with at least this bandwidth, directly or through others, group by group.
std::vector<std::vector<DeviceId>> groups_at(const Cluster& cluster,
                                             const std::vector<DeviceId>& devices,
                                             std::int64_t least) {
  UnionFind sets(devices.size());
  for (std::uint32_t a = 0; a < devices.size(); ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      if (bandwidth(cluster, devices[a], devices[b]) >= least) sets.unite(a, b);
    }
  }
  std::map<std::uint32_t, std::vector<DeviceId>> groups;
  for (std::uint32_t i = 0; i < devices.size(); ++i) groups[sets.find(i)].push_back(devices[i]);
  std::vector<std::vector<DeviceId>> result;
  for (auto& [first, group] : groups) result.push_back(std::move(group));
  return result;
}

std::set<std::int64_t> speeds_among(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::set<std::int64_t> speeds;
  for (const DeviceId a : devices) {
    for (const DeviceId b : devices) {
      if (a != b) speeds.insert(bandwidth(cluster, a, b));
    }
  }
  return speeds;
}

// So many of them, with links among them that are as fast as can be: one group where one is large
// enough, else whole groups and a part of another. `taken` are there already, to be near.
std::vector<DeviceId> near_each_other(const Cluster& cluster, std::vector<DeviceId> devices,
                                      std::size_t count, const std::vector<DeviceId>& taken) {
  if (count >= devices.size()) return devices;
  std::vector<std::vector<DeviceId>> groups{devices};
  for (const std::int64_t speed : speeds_among(cluster, devices)) {
    groups = groups_at(cluster, devices, speed + 1);
    if (groups.size() > 1) break;
  }
  const auto nearest = [&](const std::vector<DeviceId>& group) {
    std::int64_t most = 0;
    for (const DeviceId device : group) {
      for (const DeviceId other : taken) most = std::max(most, bandwidth(cluster, device, other));
    }
    return most;
  };
  if (groups.size() == devices.size()) {
    std::stable_sort(devices.begin(), devices.end(),
                     [&](DeviceId a, DeviceId b) { return nearest({a}) > nearest({b}); });
    devices.resize(count);
    return devices;
  }
  // The smallest that is large enough, else the largest.
  const auto order = [&](const std::vector<DeviceId>& group) {
    const bool enough = group.size() >= count;
    const auto size = static_cast<std::int64_t>(group.size());
    return std::tuple(-nearest(group), !enough, enough ? size : -size);
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  std::vector<DeviceId> chosen = near_each_other(cluster, groups[0], count, taken);
  std::vector<DeviceId> rest;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    rest.insert(rest.end(), groups[i].begin(), groups[i].end());
  }
  if (chosen.size() < count) {
    std::vector<DeviceId> known = taken;
    known.insert(known.end(), chosen.begin(), chosen.end());
    const auto more = near_each_other(cluster, rest, count - chosen.size(), known);
    chosen.insert(chosen.end(), more.begin(), more.end());
  }
  return chosen;
}

// Divides the devices at the slowest of their links that leaves groups of one size; the order of
// the devices follows.
void divide(const Cluster& cluster, std::vector<DeviceId>& devices, std::vector<int>& factors) {
  if (devices.size() < 2) return;
  const std::set<std::int64_t> speeds = speeds_among(cluster, devices);
  for (const std::int64_t speed : speeds) {
    auto groups = groups_at(cluster, devices, speed + 1);
    const std::size_t size = groups[0].size();
    const bool even = std::all_of(groups.begin(), groups.end(),
                                  [&](const auto& group) { return group.size() == size; });
    if (groups.size() == 1 || size == 1 || !even) continue;
    for (const int factor : prime_factors(static_cast<int>(groups.size()))) {
      factors.push_back(factor);
    }
    // All groups are divided alike, as the first is.
    std::vector<int> inner;
    devices.clear();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      std::vector<int> own;
      divide(cluster, groups[i], own);
      if (i == 0) inner = own;
      devices.insert(devices.end(), groups[i].begin(), groups[i].end());
    }
    factors.insert(factors.end(), inner.begin(), inner.end());
    return;
  }
  // Groups of unequal size are no levels, but neighbours in a ring are near each other so.
  std::vector<DeviceId> near;
  for (const auto& group : groups_at(cluster, devices, *speeds.begin() + 1)) {
    near.insert(near.end(), group.begin(), group.end());
  }
  devices = std::move(near);
  for (const int factor : prime_factors(static_cast<int>(devices.size()))) {
    factors.push_back(factor);
  }
}

// How long the ops of the step last on the device.
double ops_time(const Problem& problem, DeviceId device) {
  double total = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    total += static_cast<double>(problem.duration(op, device));
  }
  return std::max(total, 1.0);
}

// The fastest; of equal ones those with more memory, then those that are near each other. In the
// cluster's order.
std::vector<DeviceId> choose_devices(const Problem& problem, int wanted) {
  const Cluster& cluster = problem.cluster();
  const std::vector<DeviceId> devices = sharing_devices(cluster);
  const auto count = static_cast<std::size_t>(wanted);
  if (count > devices.size()) {
    fail_option("{} workers are wanted, but the cluster '{}' has {} devices that can share tensors",
                wanted, cluster.name(), devices.size());
  }
  if (count == 0 || count == devices.size()) return devices;
  std::map<std::pair<double, Bytes>, std::vector<DeviceId>> equal;
  for (const DeviceId device : devices) {
    equal[{ops_time(problem, device), -cluster.device(device).memory}].push_back(device);
  }
  std::vector<DeviceId> chosen;
  for (const auto& [speed, group] : equal) {
    const auto more = near_each_other(cluster, group, count - chosen.size(), chosen);
    chosen.insert(chosen.end(), more.begin(), more.end());
    if (chosen.size() == count) break;
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// How much of the step each device does in the time that the slowest needs for a thousandth.
std::vector<std::int64_t> shares_of(const Problem& problem, const std::vector<DeviceId>& devices) {
  std::vector<double> totals;
  for (const DeviceId device : devices) totals.push_back(ops_time(problem, device));
  const double slowest = *std::max_element(totals.begin(), totals.end());
  std::vector<std::int64_t> shares;
  for (const double total : totals) {
    shares.push_back(static_cast<std::int64_t>(1000 * slowest / total + 0.5));
  }
  return shares;
}

// Whether the devices differ in speed or memory.
bool are_equal(const Cluster& cluster, const std::vector<DeviceId>& devices,
               const std::vector<std::int64_t>& shares) {
  for (std::size_t i = 1; i < devices.size(); ++i) {
    if (shares[i] != shares[0] ||
        cluster.device(devices[i]).memory != cluster.device(devices[0]).memory) {
      return false;
    }
  }
  return true;
}

// What a step needs on one device, were it large enough.
Bytes memory_of_step(const Problem& problem, DeviceId device) {
  const Simulator simulator(std::shared_ptr<const Problem>(std::shared_ptr<void>(), &problem));
  std::vector<Bytes> peaks(problem.num_devices());
  simulator.evaluate(Placement(problem.num_ops(), device), ReadyOrder(),
                     *simulator.make_workspace(), peaks);
  return peaks[device];
}

// Shares by speed, of which none is larger than what the device's memory holds of the step; what a
// small device leaves the others have, by their speed.
void limit_by_memory(const Problem& problem, const std::vector<DeviceId>& devices,
                     std::vector<std::int64_t>& shares) {
  constexpr double kUsed = 0.9;  // of the memory: parts are not all there is
  constexpr double kUnits = 1e6;
  const auto needed = static_cast<double>(std::max<Bytes>(memory_of_step(problem, devices[0]), 1));
  std::vector<double> limits;
  double room = 0;
  for (const DeviceId device : devices) {
    limits.push_back(kUsed * static_cast<double>(problem.cluster().device(device).memory) / needed);
    room += limits.back();
  }
  std::vector<double> parts(devices.size(), -1);  // of those that are full
  for (bool changed = true; changed;) {
    changed = false;
    double left = 1;
    double speed = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] >= 0) left -= parts[i];
      if (parts[i] < 0) speed += static_cast<double>(shares[i]);
    }
    for (std::size_t i = 0; i < parts.size() && room > 1; ++i) {
      if (parts[i] >= 0 || left * static_cast<double>(shares[i]) / speed <= limits[i]) continue;
      parts[i] = limits[i];
      changed = true;
    }
    if (changed) continue;
    if (room > 1 && left == 1) return;  // nobody is full
    for (std::size_t i = 0; i < parts.size(); ++i) {
      // Where not all fits, memory alone decides.
      const double own = room <= 1       ? limits[i] / room
                         : parts[i] >= 0 ? parts[i]
                                         : left * static_cast<double>(shares[i]) / speed;
      shares[i] = std::max<std::int64_t>(1, static_cast<std::int64_t>(kUnits * own + 0.5));
    }
  }
}

// Of a link between groups of this level.
std::int64_t bandwidth_at(const Cluster& cluster, const WorkerDevices& on, std::size_t level) {
  return bandwidth(cluster, on.devices[0], on.devices[on.workers.with_digit(0, level, 1)]);
}

}  // namespace

WorkerDevices workers_on(const Problem& problem, int count) {
  std::vector<DeviceId> devices = choose_devices(problem, count);
  std::vector<int> factors;
  divide(problem.cluster(), devices, factors);
  std::vector<std::int64_t> shares = shares_of(problem, devices);
  if (!are_equal(problem.cluster(), devices, shares)) limit_by_memory(problem, devices, shares);
  Workers workers(factors, std::move(shares));
  return {std::move(workers), std::move(devices)};
}

std::size_t levels_between_machines(const Cluster& cluster, const WorkerDevices& on) {
  const std::size_t slower = levels_of_slower_links(cluster, on);
  std::size_t between = 0;
  while (between < slower && bandwidth_at(cluster, on, between) == bandwidth_at(cluster, on, 0)) {
    ++between;
  }
  return between;
}

std::size_t levels_of_slower_links(const Cluster& cluster, const WorkerDevices& on) {
  const std::size_t levels = on.workers.levels();
  std::size_t slower = 0;
  while (slower + 1 < levels &&
         bandwidth_at(cluster, on, slower) < bandwidth_at(cluster, on, levels - 1)) {
    ++slower;
  }
  return slower;
}

}  // namespace emplace
