#include "placers/common/blocks.h"

#include <algorithm>

namespace emplace {
namespace {

// Gives every device in turn as many units as the limits allow; that leaves the least for the
// others, so it succeeds whenever anything does.
bool fill(std::span<const BlockUnit> units, std::span<const BlockDevice> devices, double time,
          std::vector<std::uint32_t>& device_of_unit) {
  std::size_t unit = 0;
  for (std::uint32_t d = 0; d < devices.size(); ++d) {
    const double work_limit = time * devices[d].speed;
    double work = 0;
    Bytes left = devices[d].capacity;
    for (; unit < units.size(); ++unit) {
      work += static_cast<double>(units[unit].work);
      if (work > work_limit || units[unit].memory > left) break;
      left -= units[unit].memory;
      device_of_unit[unit] = d;
    }
  }
  return unit == units.size();
}

}  // namespace

std::optional<std::vector<std::uint32_t>> cut_into_blocks(std::span<const BlockUnit> units,
                                                          std::span<const BlockDevice> devices) {
  double all = 0;
  for (const BlockUnit& unit : units) all += static_cast<double>(unit.work);
  double slowest = devices.front().speed;
  for (const BlockDevice& device : devices) slowest = std::min(slowest, device.speed);

  // The limit on time is bisected between `low`, which fails, and `high`, which succeeds.
  constexpr int kHalvings = 60;
  double low = 0;
  double high = 2 * (all + 1) / slowest;
  std::vector<std::uint32_t> best(units.size(), 0);
  if (!fill(units, devices, high, best)) return std::nullopt;
  std::vector<std::uint32_t> tried(units.size(), 0);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = low + (high - low) / 2;
    if (fill(units, devices, middle, tried)) {
      high = middle;
      std::swap(best, tried);
    } else {
      low = middle;
    }
  }
  return best;
}

}  // namespace emplace
