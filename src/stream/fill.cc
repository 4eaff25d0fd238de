#include "stream/fill.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

#include "stream/anneal.h"

namespace emplace {
namespace {

class Filling {
 public:
  Filling(const StreamLevel& level, const std::vector<bool>& usable)
      : level_(level),
        usable_(usable),
        load_(level.devices().count, 0),
        used_(level.devices().count, 0),
        temp_(level.devices().count, 0) {}

  std::vector<DeviceId> run(bool by_memory, Rng& rng) {
    std::vector<std::pair<double, std::uint32_t>> order;
    for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
      const auto size = by_memory ? level_.memory(item) : level_.least_time(item);
      order.emplace_back(-static_cast<double>(size) * (1 + rng.uniform()), item);
    }
    std::sort(order.begin(), order.end());
    std::vector<DeviceId> device_of(level_.num_items());
    for (const auto& [key, item] : order) device_of[item] = place(item);
    return device_of;
  }

 private:
  DeviceId place(std::uint32_t item) {
    DeviceId best = kNoDevice;
    std::pair<Bytes, Nanoseconds> best_key;  // what overflows, the load
    for (const DeviceId device : level_.allowed(item)) {
      if (!usable_[device]) continue;
      const Bytes need =
          used_[device] + level_.memory(item) + std::max(temp_[device], level_.temp(item));
      const std::pair<Bytes, Nanoseconds> key{
          std::max<Bytes>(0, need - level_.devices().capacity[device]),
          load_[device] + level_.time(item, device)};
      if (best != kNoDevice && best_key <= key) continue;
      best = device;
      best_key = key;
    }
    EMPLACE_CHECK(best != kNoDevice);
    load_[best] = best_key.second;
    used_[best] += level_.memory(item);
    temp_[best] = std::max(temp_[best], level_.temp(item));
    return best;
  }

  const StreamLevel& level_;
  const std::vector<bool>& usable_;
  std::vector<Nanoseconds> load_;
  std::vector<Bytes> used_;
  std::vector<Bytes> temp_;
};

}  // namespace

std::vector<DeviceId> fill_devices(const StreamLevel& level, const std::vector<bool>& usable,
                                   Rng& rng) {
  std::vector<DeviceId> by_time = Filling(level, usable).run(false, rng);
  const StreamValue value = stream_value(level, by_time);
  if (value.overflow == 0) return by_time;
  std::vector<DeviceId> by_memory = Filling(level, usable).run(true, rng);
  return stream_value(level, by_memory) < value ? by_memory : by_time;
}

}  // namespace emplace
