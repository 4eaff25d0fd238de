// This machine as a cluster: GPUs, and groups of cores.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/local_kinds.h"
#include "cluster/local_machine.h"

namespace emplace {

struct LocalLink {
  std::int64_t bandwidth = 0;  // bytes per second
  Nanoseconds latency = 0;

  friend bool operator==(const LocalLink&, const LocalLink&) = default;
};

struct LocalOptions {
  std::vector<int> groups;        // cores of each CPU; empty: one CPU of all that can be spared
  std::optional<LocalLink> link;  // between all devices: executed steps are slowed down to it
  bool oversubscribe = false;     // devices may share cores
  int ranks = 1;  // that have devices of their own, as many for each (cluster/own_devices.h)
};

struct LocalCluster {
  ClusterSpec spec;
  std::vector<std::string> warnings;  // what its user should know, a line each
};

// Throws an Error that names what is asked of the machine and what it has.
LocalCluster local_cluster(const LocalMachine& machine, const LocalOptions& options,
                           const std::vector<LocalGpu>& gpus);
// Of this machine.
LocalCluster local_cluster(const LocalOptions& options, const std::vector<LocalGpu>& gpus);

// Cores that executing on the cluster needs: those of its CPUs; where there are several devices,
// one for each, whose thread sends, and one for the thread that drives the steps; and one for each
// GPU, whose thread launches.
int needed_cores(const ClusterSpec& spec);
// Why times measured on these cores would mislead; nothing if they would not.
std::optional<std::string> core_shortage(const ClusterSpec& spec, const LocalMachine& machine);

// "1GB/s,50us"; without a latency, that of a copy. Throws an Error that says what was expected.
LocalLink parse_local_link(std::string_view text);

// "local", "local:4x3".
bool is_local_name(std::string_view name);
// Throws an Error that says what was expected.
LocalOptions parse_local_name(std::string_view name);

}  // namespace emplace
