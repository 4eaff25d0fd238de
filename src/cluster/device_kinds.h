// The built-in kinds of devices, with their published figures and where those come from.
#pragma once

#include <span>
#include <string_view>

#include "cluster/cluster.h"

namespace emplace {

std::span<const DeviceKind> built_in_device_kinds();

// Nothing when no built-in kind has the name.
const DeviceKind* find_device_kind(std::string_view name);

}  // namespace emplace
