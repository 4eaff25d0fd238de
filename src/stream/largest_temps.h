// For each device, the largest temp of a stream's items on it, in logarithmic time per change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "stream/level.h"

namespace emplace {

class LargestTemps {
 public:
  // Without any temp there is nothing to keep.
  LargestTemps() = default;
  LargestTemps(const StreamLevel& level, DeviceId num_devices);

  void add(std::uint32_t item, DeviceId device);
  void remove(std::uint32_t item, DeviceId device);
  Bytes largest(DeviceId device) const;
  Bytes largest_without(std::uint32_t item, DeviceId device) const;
  bool empty() const { return rank_.empty(); }

 private:
  // Per device a set of ranks as words of bits, above it the words that are not empty, and so on:
  // the last level is one word.
  std::uint64_t* words(DeviceId device) { return &bits_[device * stride_]; }
  const std::uint64_t* words(DeviceId device) const { return &bits_[device * stride_]; }
  // The highest rank below `limit`, or kNone.
  std::uint32_t highest_below(DeviceId device, std::uint32_t limit) const;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::vector<std::uint32_t> rank_;   // by item, in ascending order of temp
  std::vector<Bytes> temp_;           // by rank
  std::vector<std::size_t> offsets_;  // of the levels' words, from the ranks up
  std::size_t stride_ = 0;
  std::vector<std::uint64_t> bits_;
};

}  // namespace emplace
