// Clusters by name: "4xp100", "8xv100-nvlink", "2xa100+cpu", "4xp100@12GiB". The grammar is
//   COUNTxPART { + [COUNTx]PART }     PART = KIND[-FABRIC][@MEMORY]
// with KIND a built-in kind (cluster/device_kinds.h); FABRIC, which joins the devices of that kind,
// one of pcie (default), nvlink, xgmi, or a runtime (cluster/runtimes.h); and MEMORY the capacity
// of each of the part's devices, if not the kind's. Devices are called gpu0, gpu1, ... and, where
// the kind is a CPU, cpu0, cpu1, ... Several machines on a network:
//   COUNTx(PRESET) { + [COUNTx](PRESET) } @BANDWIDTH
// "2x(4xa100-nvlink)@25GB/s" has m0.gpu0 to m1.gpu3. docs/clusters.md has the figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace emplace {

// Whether the text has the shape of a preset's name (and so is not a file's).
bool looks_like_preset(std::string_view name);

// Throws an Error that says what part of the name is not known.
ClusterSpec preset_cluster(std::string_view name);

}  // namespace emplace
