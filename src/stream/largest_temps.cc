#include "stream/largest_temps.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace emplace {

LargestTemps::LargestTemps(const StreamLevel& level, DeviceId num_devices) {
  const std::uint32_t items = level.num_items();
  std::vector<std::uint32_t> order(items);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return level.temp(a) < level.temp(b); });
  if (items == 0 || level.temp(order.back()) == 0) return;
  rank_.resize(items);
  for (std::uint32_t rank = 0; rank < items; ++rank) {
    rank_[order[rank]] = rank;
    temp_.push_back(level.temp(order[rank]));
  }
  std::size_t size = items;
  do {
    size = (size + 63) / 64;
    offsets_.push_back(stride_);
    stride_ += size;
  } while (size > 1);
  bits_.assign(stride_ * num_devices, 0);
}

void LargestTemps::add(std::uint32_t item, DeviceId device) {
  if (empty()) return;
  std::uint64_t* const bits = words(device);
  std::uint32_t at = rank_[item];
  for (const std::size_t offset : offsets_) {
    bits[offset + at / 64] |= std::uint64_t{1} << (at % 64);
    at /= 64;
  }
}

void LargestTemps::remove(std::uint32_t item, DeviceId device) {
  if (empty()) return;
  std::uint64_t* const bits = words(device);
  std::uint32_t at = rank_[item];
  for (const std::size_t offset : offsets_) {
    std::uint64_t& word = bits[offset + at / 64];
    word &= ~(std::uint64_t{1} << (at % 64));
    if (word != 0) return;
    at /= 64;
  }
}

std::uint32_t LargestTemps::highest_below(DeviceId device, std::uint32_t limit) const {
  const std::uint64_t* const bits = words(device);
  // Up to the first word with a bit below the limit, then down along the highest bits.
  std::size_t level = 0;
  std::uint32_t at = limit;
  std::uint64_t word = 0;
  for (; level < offsets_.size(); ++level) {
    const std::uint64_t below = (std::uint64_t{1} << (at % 64)) - 1;
    // The limit may be one past the last rank, where there is no word.
    const std::size_t end = level + 1 < offsets_.size() ? offsets_[level + 1] : stride_;
    if (offsets_[level] + at / 64 < end) word = bits[offsets_[level] + at / 64] & below;
    if (word != 0) break;
    at /= 64;
  }
  if (word == 0) return kNone;
  at = at / 64 * 64 + static_cast<std::uint32_t>(std::bit_width(word)) - 1;
  while (level > 0) {
    --level;
    at = at * 64 + static_cast<std::uint32_t>(std::bit_width(bits[offsets_[level] + at])) - 1;
  }
  return at;
}

Bytes LargestTemps::largest(DeviceId device) const {
  if (empty()) return 0;
  const std::uint32_t rank = highest_below(device, static_cast<std::uint32_t>(temp_.size()));
  return rank == kNone ? 0 : temp_[rank];
}

Bytes LargestTemps::largest_without(std::uint32_t item, DeviceId device) const {
  if (empty()) return 0;
  std::uint32_t rank = highest_below(device, static_cast<std::uint32_t>(temp_.size()));
  if (rank == rank_[item]) rank = highest_below(device, rank);
  return rank == kNone ? 0 : temp_[rank];
}

}  // namespace emplace
