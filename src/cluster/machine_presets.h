// Presets of several machines: "2x(4xa100-nvlink)@25GB/s" (cluster/presets.h has the grammar).
#pragma once

#include <string_view>

#include "cluster/cluster.h"

namespace emplace {

// Throws an Error that says what part of the name is not known.
ClusterSpec preset_machines(std::string_view name);

}  // namespace emplace
