#include "stream/bound_classes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace emplace {
namespace {

struct Pair {
  DeviceId from;
  DeviceId to;
};

// Links of a device, in and out, one of each speed.
std::vector<Pair> distinct_links(const StreamModel& model, DeviceId device) {
  std::map<std::pair<std::int64_t, Nanoseconds>, Pair> by_speed;
  const Cluster& cluster = model.problem().cluster();
  for (DeviceId other = 0; other < model.num_devices(); ++other) {
    for (const Pair pair : {Pair{device, other}, Pair{other, device}}) {
      const Link* link = cluster.link(pair.from, pair.to);
      if (link != nullptr) by_speed.try_emplace({link->bandwidth, link->latency}, pair);
    }
  }
  std::vector<Pair> result;
  for (const auto& [speed, pair] : by_speed) result.push_back(pair);
  return result;
}

DeviceClass describe_device(const StreamModel& model, DeviceId device, bool count_traffic) {
  DeviceClass result;
  result.devices = {device};
  result.capacity = model.capacity(device);
  result.time.resize(model.num_items());
  for (std::uint32_t item = 0; item < model.num_items(); ++item) {
    const bool possible = model.problem().allowed(item, device) &&
                          model.memory(item) <= result.capacity &&
                          model.temp(item) <= result.capacity - model.memory(item);
    result.time[item] = possible ? model.time(item, device) : kNever;
  }
  const std::vector<Pair> links = distinct_links(model, device);
  const bool pays = model.overlap() == Overlap::kNone && model.pays(device);
  result.weight.assign(model.num_nets(), links.empty() ? kNever : 0);
  result.traffic.assign(model.num_nets(), 0);
  if (links.empty()) return result;
  for (std::uint32_t net = 0; net < model.num_nets(); ++net) {
    Nanoseconds least = kNever;
    for (const Pair& pair : links) least = std::min(least, model.length(net, pair.from, pair.to));
    if (pays) result.weight[net] = least;
    if (count_traffic) result.traffic[net] = least;
  }
  return result;
}

bool same(const DeviceClass& a, const DeviceClass& b) {
  return a.capacity == b.capacity && a.time == b.time && a.weight == b.weight &&
         a.traffic == b.traffic;
}

}  // namespace

std::vector<DeviceClass> find_device_classes(const StreamModel& model) {
  const bool count_traffic = traffic_periods(model) > 0;
  std::vector<DeviceClass> classes;
  for (DeviceId device = 0; device < model.num_devices(); ++device) {
    DeviceClass described = describe_device(model, device, count_traffic);
    const auto known = std::find_if(classes.begin(), classes.end(), [&](const DeviceClass& other) {
      return same(described, other);
    });
    if (known == classes.end()) {
      classes.push_back(std::move(described));
    } else {
      known->devices.push_back(device);
    }
  }
  return classes;
}

std::int64_t traffic_periods(const StreamModel& model) {
  if (model.overlap() == Overlap::kNone || model.multicast()) return 0;
  const Cluster& cluster = model.problem().cluster();
  for (ChannelId channel = 0; channel < cluster.num_channels(); ++channel) {
    if (cluster.is_unlimited(channel)) return 0;
  }
  return 2 * static_cast<std::int64_t>(cluster.num_channels());
}

}  // namespace emplace
