#include "run/larger_cluster.h"

#include <map>
#include <utility>

#include <fmt/format.h>

namespace emplace {
namespace {

DeviceId device_to_repeat(const Cluster& cluster) {
  std::map<std::string, int> count;
  DeviceId twin = 0;
  for (const bool cpus : {false, true}) {
    for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
      if (cluster.is_cpu(id) == cpus) ++count[cluster.device(id).kind];
    }
    int most = 0;
    for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
      if (cluster.is_cpu(id) != cpus || count[cluster.device(id).kind] < most) continue;
      most = count[cluster.device(id).kind];
      twin = id;
    }
    if (most > 0) return twin;
  }
  return twin;
}

// "gpu4" after "gpu3"; the next number that is free.
std::string name_after(const Cluster& cluster, const std::string& name) {
  const std::string stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
  for (int number = cluster.num_devices();; ++number) {
    std::string next = fmt::format("{}{}", stem, number);
    if (!cluster.find_device(next)) return next;
  }
}

// As a rule would have it: a channel with a name of its own is shared, as by a host's other
// devices.
std::string channel_like(const Cluster& cluster, const Link& link, DeviceId from, DeviceId to) {
  if (link.unlimited) return std::string(kUnlimitedChannel);
  const std::string& name = cluster.channel_name(link.channel);
  const std::string& source = cluster.device(from).name;
  const std::string& target = cluster.device(to).name;
  if (name == source + "->*") return "out";
  if (name == "*->" + target) return "in";
  return name == source + "->" + target ? "pair" : name;
}

// Between devices of these names, like the link of the cluster's devices.
LinkRule rule_like(const Cluster& cluster, DeviceId like_from, DeviceId like_to,
                   const std::string& from, const std::string& to) {
  const Link& link = *cluster.link(like_from, like_to);
  LinkRule rule;
  rule.from = from;
  rule.to = to;
  rule.bandwidth = link.bandwidth;
  rule.latency = link.latency;
  rule.hold = link.hold;
  rule.multicast = link.multicast;
  rule.throttled = link.throttled;
  rule.channel = channel_like(cluster, link, like_from, like_to);
  return rule;
}

// Rules by pattern cover the new device already; those by name do not.
void add_missing_links(const Cluster& cluster, DeviceId twin, ClusterSpec& spec) {
  const Cluster larger(spec);
  const DeviceId added = cluster.num_devices();
  const std::string& name = spec.devices.back().name;
  DeviceId sibling = twin;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    if (id != twin && cluster.device(id).kind == cluster.device(twin).kind) sibling = id;
  }
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const DeviceId like = id == twin ? sibling : id;
    const std::string& other = cluster.device(id).name;
    if (cluster.link(twin, like) != nullptr && larger.link(added, id) == nullptr) {
      spec.links.push_back(rule_like(cluster, twin, like, name, other));
    }
    if (cluster.link(like, twin) != nullptr && larger.link(id, added) == nullptr) {
      spec.links.push_back(rule_like(cluster, like, twin, other, name));
    }
  }
}

}  // namespace

std::optional<Cluster> with_one_more_device(const Cluster& cluster) {
  if (cluster.num_devices() >= Cluster::kMaxDevices) return std::nullopt;
  const DeviceId twin = device_to_repeat(cluster);
  ClusterSpec spec = cluster.spec();
  Device added = cluster.device(twin);
  added.name = name_after(cluster, added.name);
  added.runs_on.clear();
  added.also_runs_on.clear();
  spec.name += fmt::format(", one more {}", added.kind);
  spec.devices.push_back(std::move(added));
  add_missing_links(cluster, twin, spec);
  Cluster larger(std::move(spec));
  // Of a cluster of one device without rules, nobody knows what a link would be like.
  const DeviceId last = cluster.num_devices();
  if (larger.link(last, twin) == nullptr || larger.link(twin, last) == nullptr) return std::nullopt;
  return larger;
}

}  // namespace emplace
