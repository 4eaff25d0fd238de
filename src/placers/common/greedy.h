// Placing groups one after another, each on the device that scores least.
#pragma once

#include <functional>
#include <span>

#include "placer/memory.h"

namespace emplace {

// What it costs to put the group on the device, where it exchanges `sent` nanoseconds of transfers
// with the neighbours that were placed before it.
using GroupScore = std::function<double(GroupId group, DeviceId device, Nanoseconds sent)>;

// Groups that have no choice are placed first, so that their neighbours see them. For the others,
// in the given order, only devices with room count, while there are any, and only devices that are
// linked with those of the group's neighbours; ties go to the lowest index. Where missing links
// leave a group no device, all is placed anew on mutually_linked_devices. What is placed is added
// to the ledger. `order` holds every group once.
std::vector<DeviceId> place_by_score(const Problem& problem, std::span<const GroupId> order,
                                     MemoryLedger& ledger, const GroupScore& score);

}  // namespace emplace
