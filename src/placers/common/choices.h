// The devices that each group may be given, when a placer uses only some of the cluster's devices.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"

#include "cost/problem.h"

#include "placer/memory.h"

namespace emplace {

class DeviceChoices {
 public:
  // `devices` ascending; every group must be allowed on at least one of them, as it is where they
  // are all the devices or mutually_linked_devices.
  DeviceChoices(const Problem& problem, std::span<const DeviceId> devices);

  // Ascending, never empty.
  std::span<const DeviceId> of(GroupId group) const { return sets_[set_of_[group]]; }

 private:
  std::vector<std::vector<DeviceId>> sets_;
  std::vector<std::uint32_t> set_of_;  // by group
};

// How long the device takes for all ops of the group.
Nanoseconds group_duration(const Problem& problem, GroupId group, DeviceId device);
Nanoseconds group_mean_duration(const Problem& problem, GroupId group);

// The device of the least group_duration, then of the lowest index. `devices` must not be empty.
DeviceId fastest_for(const Problem& problem, GroupId group, std::span<const DeviceId> devices);

// The devices with room for the group; where there are none, the one with the most room.
std::vector<DeviceId> devices_with_room(const MemoryLedger& ledger, GroupId group,
                                        std::span<const DeviceId> devices);

}  // namespace emplace
