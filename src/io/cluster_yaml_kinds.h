// The kinds of a cluster file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

#include "io/cluster_yaml_fields.h"

namespace emplace {

// In the order of the file, so that a kind may be like one above it.
std::vector<DeviceKind> read_kinds(const YAML::Node& node);

// One of the file's own, else a built-in one; nothing when there is neither.
const DeviceKind* find_kind(const std::vector<DeviceKind>& own, std::string_view name);

// The device's own, else its kind's. Throws an Error that names the device when nobody knows.
Bytes memory_of_device(const std::string& kind, const std::vector<DeviceKind>& own,
                       YamlFields& device);

}  // namespace emplace
