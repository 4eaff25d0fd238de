// What one device alone would do: everything on it.
#pragma once

#include <optional>
#include <vector>

#include "placer/evaluator.h"

namespace emplace {

struct SingleDevice {
  DeviceId device = kNoDevice;
  Evaluation value;
  Bytes used = 0;  // of its memory
  Bytes capacity = 0;
};

struct SingleDevices {
  // The fastest device that all ops may share; and, where it is too small, the fastest that is not.
  std::optional<SingleDevice> fastest;
  std::optional<SingleDevice> fitting;
};

// Of `among`, or of all devices where that is empty. Costs an evaluation for each device that
// differs in speed or memory, until one is large enough.
SingleDevices try_single_devices(Evaluator& evaluator, const std::vector<DeviceId>& among = {});

}  // namespace emplace
