// Which built-in kind a GPU is, by the name that its driver gives it.
#pragma once

#include <string_view>

#include "cluster/cluster.h"

namespace emplace {

// "NVIDIA A100-SXM4-40GB" is a100-40gb. Of kinds that differ in memory alone, the nearest; nothing
// when none has the name.
const DeviceKind* kind_of_gpu(std::string_view name, Bytes memory);

}  // namespace emplace
