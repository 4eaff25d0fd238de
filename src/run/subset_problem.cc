#include "run/subset_problem.h"

#include <algorithm>

#include "base/check.h"

#include "cluster/device_pattern.h"

namespace emplace {
namespace {

// The rule without the patterns that match none of the cluster's devices.
DeviceRule rule_on(const DeviceRule& rule, const Cluster& cluster) {
  DeviceRule own = rule;
  std::erase_if(own.devices, [&](const std::string& pattern) {
    return pattern_on(pattern, cluster.spec().devices).empty();
  });
  return own;
}

}  // namespace

std::shared_ptr<const Cluster> cluster_of(const Cluster& cluster, const DeviceSet& devices) {
  ClusterSpec spec = cluster.spec();
  spec.devices.clear();
  for (const DeviceId device : devices) spec.devices.push_back(cluster.device(device));
  for (LinkRule& rule : spec.links) {
    rule.from = pattern_on(rule.from, spec.devices);
    rule.to = pattern_on(rule.to, spec.devices);
  }
  std::erase_if(spec.links,
                [](const LinkRule& rule) { return rule.from.empty() || rule.to.empty(); });
  return std::make_shared<const Cluster>(std::move(spec));
}

std::shared_ptr<const Problem> compile_on(const std::shared_ptr<const Problem>& whole,
                                          const DeviceSet& devices) {
  const CompileOptions& options = whole->compile_options();
  auto own = cluster_of(whole->cluster(), devices);
  CompileOptions own_options = options;
  own_options.rules.clear();
  for (const DeviceRule& rule : options.rules) {
    DeviceRule own_rule = rule_on(rule, *own);
    // What forbids only devices that are not there forbids nothing.
    EMPLACE_CHECK(!own_rule.devices.empty() || own_rule.kind == DeviceRule::Kind::kForbid);
    if (!own_rule.devices.empty()) own_options.rules.push_back(std::move(own_rule));
  }
  const std::shared_ptr<const Graph> graph(whole, &whole->graph());
  return compile(graph, std::move(own), own_options);
}

Placement to_whole(const Placement& placement, const DeviceSet& devices) {
  Placement whole(placement.size());
  std::transform(placement.begin(), placement.end(), whole.begin(),
                 [&](DeviceId device) { return devices[device]; });
  return whole;
}

std::optional<Placement> to_subset(const Placement& placement, const DeviceSet& devices) {
  Placement own(placement.size());
  for (std::size_t op = 0; op < placement.size(); ++op) {
    const auto found = std::lower_bound(devices.begin(), devices.end(), placement[op]);
    if (found == devices.end() || *found != placement[op]) return std::nullopt;
    own[op] = static_cast<DeviceId>(found - devices.begin());
  }
  return own;
}

DeviceSet used_devices(const Problem& problem, const Placement& placement) {
  std::vector<bool> used(problem.num_devices(), false);
  for (const DeviceId device : placement) used[device] = true;
  DeviceSet devices;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    if (used[device]) devices.push_back(device);
  }
  return devices;
}

}  // namespace emplace
