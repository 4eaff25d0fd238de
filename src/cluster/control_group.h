// What Linux lets this process use of the machine: limits of its control group, as containers have
// them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/units.h"

namespace emplace {

struct ControlGroup {
  std::optional<double> cores;  // processor time per time
  std::optional<Bytes> memory;
};

// `mounted`: where the control groups are; `membership`: what /proc/self/cgroup says, a line for
// each hierarchy. The tightest limit on the way from the root to the group holds. Both versions
// are read; where there is neither, nothing is limited.
ControlGroup read_control_group(const std::filesystem::path& mounted,
                                const std::string& membership);
ControlGroup read_control_group();

}  // namespace emplace
