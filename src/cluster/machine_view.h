// A flat cluster as machines again, so that it can be written as people would write it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/machines.h"

namespace emplace {

// Machines that are alike but for the numbers in their names, which go on from each other.
struct MachineGroup {
  Machine machine;                                  // by the name without the number
  std::optional<std::size_t> count = std::nullopt;  // nothing: one, whose name has no number
  std::size_t start = 0;
};

struct MachineView {
  std::vector<MachineGroup> groups;
  std::vector<LinkRule> network;  // as add_network takes them
  std::vector<Device> devices;    // of no machine
  std::vector<LinkRule> links;    // that are left
};

// What a cluster file that means the same as `spec`, rule by rule, would say. Without machines
// where devices have none, or where the order of devices or rules is not that of such a file.
MachineView machine_view(const ClusterSpec& spec);

}  // namespace emplace
