// emplace.cluster/1 out.
#pragma once

#include <string>

#include "cluster/cluster.h"

namespace emplace {

// A file meant to be edited: it spells out the figures of every kind used, and read back it gives
// the same devices, kinds and links.
std::string write_cluster_yaml(const ClusterSpec& spec);

}  // namespace emplace
