// The devices of a stream, as its lower bound sees them: those that differ in nothing are one
// class, and what a class pays for communication is the least that any partner can make it pay.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "stream/model.h"

namespace emplace {

// Longer than any load, and still safe to add.
inline constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max() / 8;

struct DeviceClass {
  std::vector<DeviceId> devices;
  Bytes capacity = 0;
  // By item: its time; kNever where it may not be, or does not fit alone.
  std::vector<Nanoseconds> time;
  // By net, for a device that holds some of its members but not all: the least that this adds to
  // the device's load, and the least time that it takes on channels, whether sent or received.
  // kNever where the device has no link.
  std::vector<Nanoseconds> weight;
  std::vector<Nanoseconds> traffic;
};

std::vector<DeviceClass> find_device_classes(const StreamModel& model);

// The sum of all devices' traffic is at most this many periods: each transfer is counted where it
// leaves and where it arrives, and each channel is busy for one period at most. 0: no such rule,
// as devices pay for communication themselves, several destinations share a transfer, or a channel
// is unlimited.
std::int64_t traffic_periods(const StreamModel& model);

}  // namespace emplace
