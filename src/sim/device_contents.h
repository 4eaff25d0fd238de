// What each device holds, in the words of the model: its layers, whole or in part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

#include "graph/modules.h"

#include "sim/placement.h"

namespace emplace {

// A layer with all that is in it, or neighbours of which each is here as a whole, or each in part.
struct HeldModules {
  std::string first;
  std::string last;         // the same for a single module
  std::uint32_t count = 1;  // from first to last
  double share = 1;         // of their work that is here; what is nearly whole counts as whole
  double work = 0;          // of the device's work that is in them

  bool whole() const { return share >= kWhole; }
  static constexpr double kWhole = 0.95;
  static constexpr double kNearlyWhole = 0.94;  // its work is, but not what it keeps
};

struct DeviceContents {
  std::vector<HeldModules> modules;  // in the order of the forward pass
  Bytes resident = 0;                // parameters and what else stays for the whole step
  double work = 0;                   // of all ops' mean durations, 0..1
};

// By device. Layers are those of graph/layers.h.
std::vector<DeviceContents> device_contents(const Problem& problem, const Placement& placement,
                                            const Modules& modules);

}  // namespace emplace
