#include "run/link_classes.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cluster/device_pattern.h"

namespace emplace {
namespace {

// Those that the pattern means of one kind: by the kind's name, where that means the same.
std::string of_kind(const ClusterSpec& spec, const std::string& pattern, const std::string& kind) {
  std::vector<std::string> names;
  bool by_kind = true;
  for (const Device& device : spec.devices) {
    const bool meant = device.kind == kind && names_device(pattern, device);
    if (meant) names.push_back(device.name);
    by_kind = by_kind && meant == names_device(kind, device);
  }
  return by_kind ? kind : fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

std::size_t rule_of_link(const ClusterSpec& spec, DeviceId from, DeviceId to) {
  for (std::size_t i = spec.links.size(); i-- > 0;) {
    if (names_device(spec.links[i].from, spec.devices[from]) &&
        names_device(spec.links[i].to, spec.devices[to])) {
      return i;
    }
  }
  return spec.links.size();
}

std::vector<LinkClass> link_classes(const ClusterSpec& spec) {
  const auto count = static_cast<DeviceId>(spec.devices.size());
  std::vector<std::set<std::pair<std::string, std::string>>> kinds(spec.links.size());
  for (DeviceId from = 0; from < count; ++from) {
    for (DeviceId to = 0; to < count; ++to) {
      const std::size_t rule = from == to ? spec.links.size() : rule_of_link(spec, from, to);
      if (rule == spec.links.size()) continue;
      kinds[rule].emplace(spec.devices[from].kind, spec.devices[to].kind);
    }
  }
  std::vector<LinkClass> classes;
  for (std::size_t rule = 0; rule < kinds.size(); ++rule) {
    for (const auto& [from, to] : kinds[rule]) {
      LinkRule own = spec.links[rule];
      if (kinds[rule].size() > 1) {
        own.from = of_kind(spec, own.from, from);
        own.to = of_kind(spec, own.to, to);
      }
      classes.push_back({rule, std::move(own)});
    }
  }
  return classes;
}

}  // namespace emplace
