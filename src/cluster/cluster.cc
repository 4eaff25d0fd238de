#include "cluster/cluster.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/wide.h"

#include "cluster/device_kinds.h"
#include "cluster/device_pattern.h"
#include "cluster/runs_on.h"

namespace emplace {
namespace {

// Every part of the pattern has to mean some device, so that a misspelt one is noticed.
std::vector<DeviceId> named_devices(const std::string& pattern, const std::string& what,
                                    const std::vector<Device>& devices) {
  for (const std::string_view part : pattern_parts(pattern)) {
    if (!pattern_on(part, devices).empty()) continue;
    fail_input("{}: '{}' is neither a device, a device's kind, nor a pattern of them such as \"*\"",
               what, part);
  }
  std::vector<DeviceId> found;
  for (std::size_t id = 0; id < devices.size(); ++id) {
    if (names_device(pattern, devices[id])) found.push_back(static_cast<DeviceId>(id));
  }
  return found;
}

bool is_unlimited_rule(const LinkRule& rule) {
  return rule.channel == kUnlimitedChannel;
}

void check_device_name(const std::string& name, std::string_view what) {
  if (name.size() > limits::kNameBytes) {
    fail_input("{} '{}...': has a name of {} bytes; a name has at most {}", what,
               printable(name.substr(0, 100)), name.size(), limits::kNameBytes);
  }
  const std::string_view fault = fault_of_name(name);
  if (!fault.empty()) fail_input("{} '{}': its name {}", what, printable(name), fault);
}

// Whoever has one of the devices has one of each.
void check_places(const std::vector<Device>& devices) {
  const Device* first = nullptr;
  for (const Device& device : devices) {
    if (device.runs_on.empty()) continue;
    if (first == nullptr) first = &device;
    if (device.also_runs_on.size() == first->also_runs_on.size()) continue;
    fail_input("device '{}': runs_on: places: {}; expected {}, as device '{}' has", device.name,
               1 + device.also_runs_on.size(), 1 + first->also_runs_on.size(), first->name);
  }
}

void check_rule(const LinkRule& rule, const std::string& what) {
  if (rule.bandwidth <= 0) fail_input("{}: bandwidth: expected more than 0 bytes per second", what);
  if (rule.latency < 0) fail_input("{}: latency_us: is negative", what);
  if (rule.hold < 0) fail_input("{}: hold_us: is negative", what);
  if (rule.channel.empty()) fail_input("{}: channel: is empty", what);
  check_device_name(rule.channel, "channel");
  if (!is_unlimited_rule(rule)) return;
  if (rule.hold > 0) {
    fail_input("{}: hold_us: expected none, as nothing waits for a channel that is unlimited",
               what);
  }
  if (rule.multicast) {
    fail_input(
        "{}: multicast: expected false, as destinations share no channel where it is unlimited",
        what);
  }
}

std::string channel_name_of(const LinkRule& rule, const Device& from, const Device& to) {
  if (rule.channel == "pair") return from.name + "->" + to.name;
  if (rule.channel == "out") return from.name + "->*";
  if (rule.channel == "in") return "*->" + to.name;
  if (is_unlimited_rule(rule)) return from.name + "->" + to.name + " (unlimited)";
  return rule.channel;
}

}  // namespace

Nanoseconds transfer_time(const Link& link, Bytes bytes) {
  const Wide scaled = static_cast<Wide>(bytes) * 1'000'000'000U;
  const Wide bandwidth = static_cast<Wide>(link.bandwidth);
  const Wide total = (scaled + bandwidth - 1) / bandwidth + static_cast<Wide>(link.latency);
  if (total > static_cast<Wide>(std::numeric_limits<Nanoseconds>::max())) {
    fail_input("sending {} bytes at {} bytes per second takes longer than can be counted", bytes,
               link.bandwidth);
  }
  return static_cast<Nanoseconds>(total);
}

Cluster::Cluster(ClusterSpec spec) : spec_(std::move(spec)) {
  spec_.name = printable(spec_.name);  // may be a file's
  check_devices();
  resolve_kinds();
  expand_links();
}

std::optional<DeviceId> Cluster::find_device(std::string_view name) const {
  for (DeviceId id = 0; id < num_devices(); ++id) {
    if (spec_.devices[id].name == name) return id;
  }
  return std::nullopt;
}

void Cluster::check_devices() const {
  if (spec_.devices.empty()) fail_input("devices: the cluster has none");
  if (spec_.devices.size() > kMaxDevices) {
    fail(ErrorKind::kUnsupported, "devices: {} are more than the {} that are supported",
         spec_.devices.size(), kMaxDevices);
  }
  std::set<std::string_view> names;
  for (const Device& device : spec_.devices) {
    if (device.name.empty()) fail_input("devices: a device has no name");
    check_device_name(device.name, "device");
    check_device_name(device.kind, "kind");
    if (device.name == "*") fail_input("device '*': is the pattern for all devices, not a name");
    if (device.name.find(',') != std::string::npos) {
      fail_input("device '{}': a comma stands between devices, so no name has one", device.name);
    }
    if (!names.insert(device.name).second)
      fail_input("device '{}': name is used twice", device.name);
    if (device.memory < 0) fail_input("device '{}': memory: is negative", device.name);
    if (device.gap < 0) fail_input("device '{}': gap_us: is negative", device.name);
    constexpr double kMostSlowdown = 1e12;
    const double slowdown = device.slowdown.to_double();
    if (!(slowdown >= 1 / kMostSlowdown && slowdown <= kMostSlowdown)) {
      fail_input("device '{}': slowdown: expected a number from {} to {}", device.name,
                 1 / kMostSlowdown, kMostSlowdown);
    }
    with_context(fmt::format("device '{}'", device.name), [&] {
      const bool is_somewhere = !device.runs_on.empty() || !device.also_runs_on.empty();
      if (is_somewhere) parse_runs_on(device.runs_on);
      for (const std::string& place : device.also_runs_on) parse_runs_on(place);
    });
  }
  check_places(spec_.devices);
}

void Cluster::resolve_kinds() {
  for (const Device& device : spec_.devices) {
    const auto own = std::find_if(spec_.kinds.begin(), spec_.kinds.end(),
                                  [&](const DeviceKind& kind) { return kind.name == device.kind; });
    if (own != spec_.kinds.end()) {
      kinds_.push_back(*own);
    } else if (const DeviceKind* built_in = find_device_kind(device.kind)) {
      kinds_.push_back(*built_in);
    } else {
      fail_input("device '{}': kind: '{}' is neither built in nor listed under kinds", device.name,
                 device.kind);
    }
  }
}

void Cluster::expand_links() {
  links_.resize(spec_.devices.size() * spec_.devices.size());
  std::vector<const LinkRule*> rules(links_.size(), nullptr);  // the last that covers the pair
  for (const LinkRule& rule : spec_.links) {
    const std::string what = fmt::format("link {} -> {}", rule.from, rule.to);
    check_rule(rule, what);
    const std::vector<DeviceId> receivers = named_devices(rule.to, what, spec_.devices);
    for (const DeviceId from : named_devices(rule.from, what, spec_.devices)) {
      for (const DeviceId to : receivers) {
        rules[static_cast<std::size_t>(from) * num_devices() + to] = &rule;
      }
    }
  }
  std::map<std::string, ChannelId> channels;
  for (DeviceId from = 0; from < num_devices(); ++from) {
    for (DeviceId to = 0; to < num_devices(); ++to) {
      const LinkRule* rule = rules[static_cast<std::size_t>(from) * num_devices() + to];
      if (from == to || rule == nullptr) continue;
      const std::string name = channel_name_of(*rule, spec_.devices[from], spec_.devices[to]);
      const auto [entry, added] = channels.try_emplace(name, num_channels());
      if (added) {
        channel_names_.push_back(name);
        unlimited_.push_back(is_unlimited_rule(*rule));
      }
      links_[static_cast<std::size_t>(from) * num_devices() + to] = {
          entry->second,   rule->bandwidth, rule->latency,           rule->hold,
          rule->multicast, rule->throttled, is_unlimited_rule(*rule)};
    }
  }
}

bool Cluster::fully_linked() const {
  for (DeviceId from = 0; from < num_devices(); ++from) {
    for (DeviceId to = 0; to < num_devices(); ++to) {
      if (from != to && link(from, to) == nullptr) return false;
    }
  }
  return true;
}

void Cluster::require_linked() const {
  if (num_devices() < 2) return;
  for (DeviceId id = 0; id < num_devices(); ++id) {
    bool linked = false;
    for (DeviceId other = 0; other < num_devices(); ++other) {
      linked = linked || link(id, other) != nullptr || link(other, id) != nullptr;
    }
    if (!linked) {
      fail_input(
          "device '{}': has no link to or from any other device; expected a rule under links",
          device(id).name);
    }
  }
}

}  // namespace emplace
