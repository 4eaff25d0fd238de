// The devices of one of several ranks on a machine, each of which executes whole steps by itself,
// to measure them: a cluster file names a place of every device for each of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace emplace {

struct OwnDevices {
  std::shared_ptr<const Cluster> cluster;  // the same, whose devices are the rank's
  std::vector<int> cores_of_others = {};   // that the others' devices have, ascending
  std::vector<std::string> warnings = {};
};

// Of the rank `index` among `count` on this machine. Throws an Error that names the device which
// has too few places, or a GPU that two ranks would have.
OwnDevices devices_of_rank(const std::shared_ptr<const Cluster>& cluster, int index, int count);

}  // namespace emplace
