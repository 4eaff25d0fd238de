#include "run/prices.h"

#include "base/options.h"
#include "base/split.h"

namespace emplace {
namespace {

bool concerns(const std::string& pattern, const Cluster& cluster, DeviceId id) {
  if (pattern == "gpu" && !cluster.is_cpu(id)) return true;
  if (pattern == "cpu" && cluster.is_cpu(id)) return true;
  return matches_pattern(pattern, cluster.device(id).name) ||
         matches_pattern(pattern, cluster.device(id).kind);
}

}  // namespace

Prices Prices::parse(const std::vector<std::string>& texts) {
  constexpr double kHighest = 1e9;
  Prices prices;
  for (const std::string& text : texts) {
    for (const std::string_view one : split(text, ',')) {
      const std::size_t equals = one.rfind('=');
      if (equals == std::string_view::npos || equals == 0) {
        fail_option("price '{}': expected DEVICES=PRICE, the price of an hour, e.g. a100=2.5", one);
      }
      const std::string devices(trim(one.substr(0, equals)));
      prices.rules_.push_back(
          {devices, read_real("price of " + devices, trim(one.substr(equals + 1)), 0, kHighest)});
    }
  }
  return prices;
}

double Prices::per_hour(const Cluster& cluster, const std::vector<DeviceId>& devices) const {
  double total = 0;
  for (const DeviceId id : devices) {
    const Rule* last = nullptr;
    for (const Rule& rule : rules_) {
      if (concerns(rule.devices, cluster, id)) last = &rule;
    }
    if (last == nullptr && cluster.is_cpu(id)) continue;
    if (last == nullptr) {
      const Device& device = cluster.device(id);
      fail_option("'{}' of '{}' has no price; expected one, such as {}=1.5", device.name,
                  cluster.name(), device.kind);
    }
    total += last->per_hour;
  }
  return total;
}

void Prices::require_complete(const Cluster& cluster) const {
  for (DeviceId id = 0; id < cluster.num_devices() && !empty(); ++id) per_hour(cluster, {id});
}

}  // namespace emplace
