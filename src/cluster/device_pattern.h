// Which devices the end of a link rule means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace emplace {

// A pattern has one or more parts, with commas between them: a device's name, a kind, or, for a
// device of a machine ("node0.gpu1"), the machine and a kind ("node0.a100"). In each, "*" stands
// for any text.
std::vector<std::string_view> pattern_parts(std::string_view pattern);

// Whether one of the parts means the device.
bool names_device(std::string_view pattern, const Device& device);

// The parts that mean any of the devices; empty when none does.
std::string pattern_on(std::string_view pattern, const std::vector<Device>& devices);

}  // namespace emplace
