// A partition, told to people and to programs.
#pragma once

#include <string>

#include "run/partition.h"

namespace emplace {

// What a user should do, with the figures.
std::string verdict(const PartitionAnswer& answer);
std::string to_text(const PartitionAnswer& answer);
std::string to_json(const PartitionAnswer& answer);
// The plan, and which of the divided graph's ops is on which device.
std::string plan_json(const PartitionAnswer& answer);
std::string divided_placement_json(const PartitionAnswer& answer);

}  // namespace emplace
