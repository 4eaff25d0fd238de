// A cluster of devices that are really there, on whatever machine this is: all on one core. What
// is executed there shows order, results and memory, not speed.
#pragma once

#include <memory>

#include <fmt/format.h>
#include <sched.h>

#include "cluster/cluster.h"

namespace emplace {

struct TestLink {
  std::int64_t bandwidth = 1'000'000'000;
  Nanoseconds latency = 0;
  bool throttled = false;
};

// The first that this process may use.
inline int usable_core() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  int core = 0;
  while (core < CPU_SETSIZE && !CPU_ISSET(static_cast<std::size_t>(core), &set)) ++core;
  return core;
}

// The last: another one, where there are two.
inline int last_usable_core() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  int core = CPU_SETSIZE - 1;
  while (core > 0 && !CPU_ISSET(static_cast<std::size_t>(core), &set)) --core;
  return core;
}

// cpu0, cpu1, ... of the kind "cpu".
inline ClusterSpec shared_core_spec(int devices, TestLink link = {}, Bytes memory = kUnlimited) {
  ClusterSpec spec;
  spec.name = "test";
  for (int i = 0; i < devices; ++i) {
    Device device;
    device.name = fmt::format("cpu{}", i);
    device.kind = "cpu";
    device.memory = memory;
    device.runs_on = fmt::format("cores {}", usable_core());
    spec.devices.push_back(device);
  }
  LinkRule rule;
  rule.bandwidth = link.bandwidth;
  rule.latency = link.latency;
  rule.channel = "out";
  rule.throttled = link.throttled;
  spec.links.push_back(rule);
  return spec;
}

inline std::shared_ptr<const Cluster> shared_core_cluster(int devices, TestLink link = {},
                                                          Bytes memory = kUnlimited) {
  return std::make_shared<const Cluster>(shared_core_spec(devices, link, memory));
}

}  // namespace emplace
