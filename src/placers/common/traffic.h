// What a group would send and receive on each device, given where its neighbours already are.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

namespace emplace {

class Traffic {
 public:
  // More than any sum: a neighbour is where no link leads.
  static constexpr Nanoseconds kUnreachable = std::numeric_limits<Nanoseconds>::max();

  explicit Traffic(const Problem& problem);

  // For each of `devices`, the lengths of the transfers between the group there and those of its
  // neighbours that have a device (the others have kNoDevice), each tensor once per pair of devices
  // as the simulator sends it. The answer lasts until the next call.
  std::span<const Nanoseconds> measure(GroupId group, std::span<const DeviceId> devices,
                                       std::span<const DeviceId> device_of_group);

 private:
  void add(TensorId tensor, DeviceId other, bool arrives, std::span<const DeviceId> devices);

  const Problem* problem_;
  std::vector<Nanoseconds> sums_;            // by position in `devices`
  std::vector<std::uint64_t> tensor_stamp_;  // the call that has seen the tensor last
  std::vector<std::uint64_t> device_stamp_;  // the (call, output) that has seen the device last
  std::uint64_t call_ = 0;
  std::uint64_t output_ = 0;
};

}  // namespace emplace
