// How much memory each device used over the instants of a recorded run, with fast maxima over
// ranges of instants.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace emplace {

class MemoryProfile {
 public:
  // Forgets everything; before the first instant each device uses `initial`.
  void clear(const std::vector<Bytes>& initial);
  // `used` from the end of `instant` on. Instants ascend per device.
  void add(std::uint32_t device, std::uint32_t instant, Bytes used) {
    devices_[device].entries.push_back({instant, used});
  }
  // After the last: makes ready for the following.
  void close();

  // The largest ever.
  Bytes peak(std::uint32_t device) const { return devices_[device].peak; }
  Bytes at(std::uint32_t device, std::uint32_t instant) const;
  // The largest from the end of `first` to the end of `last`.
  Bytes max_over(std::uint32_t device, std::uint32_t first, std::uint32_t last) const;

 private:
  static constexpr std::size_t kBlock = 64;

  struct Entry {
    std::uint32_t instant;
    Bytes used;
  };
  struct Device {
    std::vector<Entry> entries;    // the first stands for the time before the first instant
    std::vector<Bytes> block_max;  // of each kBlock entries
    Bytes peak = 0;
  };

  // The entry that holds at the end of `instant`.
  static std::size_t entry_at(const Device& device, std::uint32_t instant);

  std::vector<Device> devices_;
};

}  // namespace emplace
