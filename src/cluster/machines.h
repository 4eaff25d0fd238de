// Machines: devices that share a name and a way out. A cluster is flat, so a machine is what its
// devices are called ("node0.gpu1") and which rules join them.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace emplace {

struct Machine {
  std::string name;
  std::vector<Device> devices;  // by their names in the machine: "gpu1"
  std::vector<LinkRule> links;  // within it, in the same names
};

// Adds its devices, and its links, to the cluster.
void add_machine(const Machine& machine, ClusterSpec& spec);

// Adds links between the devices of different machines. `from` and `to` of the rule name machines;
// its channel is one per ordered pair of machines (pair), per sending machine (out), per receiving
// machine (in), or has a name. Throws an Error when an end names no machine.
void add_network(const LinkRule& rule, const std::vector<std::string>& machines, ClusterSpec& spec);

}  // namespace emplace
