// What a framework's runtime costs beside ops and copies, measured on the machines of published
// placers. In the name of a preset it stands where a fabric does: "4xk80-tf1+cpu-haswell18".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace emplace {

struct Runtime {
  std::string_view name;
  std::vector<std::string_view> kinds;  // that it is known of
  std::int64_t bandwidth = 0;           // between two devices, bytes per second
  std::int64_t host_bandwidth = 0;      // between a device and a CPU
  Nanoseconds latency = 0;              // of a transfer
  Nanoseconds hold = 0;                 // how long a channel stays unavailable after it
  Nanoseconds gap = 0;                  // how long a device stays unavailable after an op
  Nanoseconds host_gap = 0;             // likewise a CPU
  bool multicast = false;
  const char* host_receives = "in";  // the channel from devices to a CPU
  double launch_us = 0;              // of a plain kernel; 0: the kind's
};

// Those that are known of this kind of device.
std::vector<Runtime> runtimes_for(std::string_view kind);

}  // namespace emplace
