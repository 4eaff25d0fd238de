#include "sim/incremental_profile.h"

#include <algorithm>

namespace emplace {

void MemoryProfile::clear(const std::vector<Bytes>& initial) {
  devices_.resize(initial.size());
  for (std::size_t d = 0; d < initial.size(); ++d) devices_[d].entries.assign(1, {0, initial[d]});
}

void MemoryProfile::close() {
  for (Device& device : devices_) {
    device.block_max.clear();
    device.peak = 0;
    for (std::size_t at = 0; at < device.entries.size(); ++at) {
      const Bytes used = device.entries[at].used;
      if (at % kBlock == 0) device.block_max.push_back(used);
      device.block_max.back() = std::max(device.block_max.back(), used);
    }
    for (const Bytes largest : device.block_max) device.peak = std::max(device.peak, largest);
  }
}

std::size_t MemoryProfile::entry_at(const Device& device, std::uint32_t instant) {
  const auto after = std::upper_bound(
      device.entries.begin(), device.entries.end(), instant,
      [](std::uint32_t value, const Entry& entry) { return value < entry.instant; });
  return static_cast<std::size_t>(after - device.entries.begin()) - 1;
}

Bytes MemoryProfile::at(std::uint32_t device, std::uint32_t instant) const {
  const Device& d = devices_[device];
  return d.entries[entry_at(d, instant)].used;
}

Bytes MemoryProfile::max_over(std::uint32_t device, std::uint32_t first, std::uint32_t last) const {
  const Device& d = devices_[device];
  const std::size_t end = entry_at(d, last) + 1;
  std::size_t at = entry_at(d, first);
  Bytes result = d.entries[at].used;
  while (at < end) {
    if (at % kBlock == 0 && at + kBlock <= end) {
      result = std::max(result, d.block_max[at / kBlock]);
      at += kBlock;
    } else {
      result = std::max(result, d.entries[at++].used);
    }
  }
  return result;
}

}  // namespace emplace
