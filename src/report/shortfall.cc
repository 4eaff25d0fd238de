#include "report/shortfall.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/units.h"

#include "report/explanation.h"
#include "report/prose.h"

namespace emplace {
namespace {

// How many devices of the short ones' kind would hold what those of that kind hold now.
std::string advise_on_count(const Assessment& assessment) {
  const Cluster& cluster = assessment.problem().cluster();
  struct KindCount {
    Bytes used = 0;
    std::int64_t count = 0;
    Bytes capacity = kUnlimited;  // the least of the short ones
  };
  std::map<std::string, KindCount> kinds;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const Device& device = cluster.device(id);
    KindCount& kind = kinds[device.kind];
    kind.used += assessment.used(id);
    kind.count += 1;
    if (assessment.used(id) > device.memory) kind.capacity = std::min(kind.capacity, device.memory);
  }
  std::string text;
  for (const auto& [name, kind] : kinds) {
    if (kind.capacity == 0 || kind.capacity == kUnlimited) continue;
    const std::int64_t enough = (kind.used - 1) / kind.capacity + 1;
    if (enough <= kind.count) continue;
    text += wrapped(fmt::format("or with at least {} devices of kind {} instead of {}", enough,
                                name, kind.count));
  }
  return text;
}

}  // namespace

std::string describe_shortfall(const Assessment& assessment) {
  std::string text;
  for (DeviceId id = 0; id < assessment.problem().num_devices(); ++id) {
    const Device& device = assessment.problem().cluster().device(id);
    if (assessment.used(id) <= device.memory) continue;
    text += fmt::format(" does not fit: '{}' needs {} of its {}, {} short\n", device.name,
                        format_bytes(assessment.used(id)), format_bytes(device.memory),
                        format_bytes(assessment.used(id) - device.memory));
  }
  return text;
}

std::string advise_on_shortfall(const Explanation& explanation, const Assessment& assessment) {
  const Cluster& cluster = assessment.problem().cluster();
  Bytes needed = 0;
  Bytes there = 0;
  double factor = 1;
  bool some_has_none = false;
  bool tensors = true;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const Bytes capacity = cluster.device(id).memory;
    const Bytes used = assessment.used(id);
    needed += used;
    there = capacity == kUnlimited || there == kUnlimited ? kUnlimited : there + capacity;
    if (used <= capacity) continue;
    some_has_none = some_has_none || capacity == 0;
    factor = std::max(factor, static_cast<double>(used) / static_cast<double>(capacity));
    tensors = tensors && explanation.contents[id].resident < capacity;
  }
  std::string text;
  if (there != kUnlimited) {
    text += wrapped(fmt::format("in all, this placement needs {}; all devices together have {}",
                                format_bytes(needed), format_bytes(there)));
  }
  if (!some_has_none) {
    text += wrapped(fmt::format("it would fit with {:.2f} times the memory on every device",
                                std::ceil(factor * 100) / 100));
  }
  text += advise_on_count(assessment);
  if (!tensors) return text;
  return text +
         wrapped(fmt::format(
             "what is short is room for tensors, not parameters: a smaller batch{} would help",
             explanation.could_recompute
                 ? ", or recomputing activations, which trades time for memory,"
                 : ""));
}

}  // namespace emplace
