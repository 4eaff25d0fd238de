// Everything that happened in one simulated step.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace emplace {

struct OpSpan {
  Nanoseconds start = 0;
  Nanoseconds finish = 0;
};

// A tensor on its way. A multicast transfer appears once per destination, with the same times.
struct Transfer {
  TensorId tensor = 0;
  DeviceId from = 0;
  DeviceId to = 0;
  ChannelId channel = kNoChannel;  // none for a transfer that takes no time
  Nanoseconds queued = 0;
  Nanoseconds start = 0;
  Nanoseconds finish = 0;
  bool shared = false;  // served by the multicast transfer of the entry before it
};

struct DeviceUse {
  Nanoseconds busy = 0;  // sum of its ops' durations
  Bytes peak = 0;
  Bytes capacity = 0;
};

struct ChannelUse {
  Nanoseconds busy = 0;  // sum of its transfers' lengths, without holds
  Bytes bytes = 0;
  std::int64_t transfers = 0;
};

struct Timeline {
  Nanoseconds step = 0;
  std::vector<OpSpan> ops;          // by op
  std::vector<Transfer> transfers;  // in the order in which they were queued
  std::vector<DeviceUse> devices;
  std::vector<ChannelUse> channels;
  std::int64_t num_transfers = 0;  // a multicast counts once
  Bytes transfer_bytes = 0;

  bool fits() const {
    for (const DeviceUse& device : devices) {
      if (device.peak > device.capacity) return false;
    }
    return true;
  }
};

}  // namespace emplace
