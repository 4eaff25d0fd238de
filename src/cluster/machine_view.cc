// Devices are taken apart at the last dot of their names, and the first rules go to the machine
// that all their names begin with. Whatever is guessed is put together again and compared with the
// cluster: if anything differs, nothing is said about machines.
#include "cluster/machine_view.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "cluster/device_pattern.h"

namespace emplace {
namespace {

bool same(const Device& a, const Device& b) {
  return a.name == b.name && a.kind == b.kind && a.memory == b.memory && a.gap == b.gap &&
         a.slowdown == b.slowdown && a.free_communication == b.free_communication &&
         a.runs_on == b.runs_on && a.also_runs_on == b.also_runs_on;
}

bool same(const LinkRule& a, const LinkRule& b) {
  return a.from == b.from && a.to == b.to && a.bandwidth == b.bandwidth && a.latency == b.latency &&
         a.hold == b.hold && a.channel == b.channel && a.multicast == b.multicast &&
         a.throttled == b.throttled;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return same(x, y); });
}

// The pattern in the names that devices have in the machine; nothing when it means others too.
std::optional<std::string> within(const std::string& machine, const std::string& pattern) {
  std::string result;
  for (const std::string_view part : pattern_parts(pattern)) {
    if (!part.starts_with(machine + ".")) return std::nullopt;
    result += (result.empty() ? "" : ",") + std::string(part.substr(machine.size() + 1));
  }
  return result;
}

std::optional<LinkRule> within(const std::string& machine, LinkRule rule) {
  const auto from = within(machine, rule.from);
  const auto to = within(machine, rule.to);
  if (!from || !to) return std::nullopt;
  rule.from = *from;
  rule.to = *to;
  if (rule.channel == "pair" || rule.channel == "out" || rule.channel == "in" ||
      rule.channel == kUnlimitedChannel) {
    return rule;
  }
  const auto channel = within(machine, rule.channel);
  if (!channel) return std::nullopt;
  rule.channel = *channel;
  return rule;
}

std::vector<Machine> find_machines(const ClusterSpec& spec, std::size_t& num_devices,
                                   std::size_t& num_links) {
  std::vector<Machine> machines;
  for (num_devices = 0; num_devices < spec.devices.size(); ++num_devices) {
    Device device = spec.devices[num_devices];
    const std::size_t dot = device.name.rfind('.');
    if (dot == std::string::npos) break;
    const std::string name = device.name.substr(0, dot);
    device.name.erase(0, dot + 1);
    if (machines.empty() || machines.back().name != name) machines.push_back({name, {}, {}});
    machines.back().devices.push_back(std::move(device));
  }
  // Machine by machine, as they are added.
  auto machine = machines.begin();
  for (num_links = 0; num_links < spec.links.size(); ++num_links) {
    std::optional<LinkRule> rule;
    for (; machine != machines.end(); ++machine) {
      rule = within(machine->name, spec.links[num_links]);
      if (rule) break;
    }
    if (!rule) break;
    machine->links.push_back(std::move(*rule));
  }
  return machines;
}

struct NumberedName {
  std::string stem;
  std::size_t number = 0;
};

// Nothing where the name ends in no number, or in one that would be written differently.
std::optional<NumberedName> take_number(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  NumberedName result{name.substr(0, digits)};
  const char* const end = name.data() + name.size();
  if (std::from_chars(name.data() + digits, end, result.number).ec != std::errc{} || digits == 0 ||
      result.stem + fmt::format("{}", result.number) != name) {
    return std::nullopt;
  }
  return result;
}

std::vector<MachineGroup> group_alike(const std::vector<Machine>& machines) {
  std::vector<MachineGroup> groups;
  for (const Machine& machine : machines) {
    const auto name = take_number(machine.name);
    if (name && !groups.empty()) {
      MachineGroup& last = groups.back();
      if (last.count && last.machine.name == name->stem &&
          name->number == last.start + *last.count && same(last.machine.devices, machine.devices) &&
          same(last.machine.links, machine.links)) {
        ++*last.count;
        continue;
      }
    }
    MachineGroup group{machine};
    if (name) {
      group.machine.name = name->stem;
      group.count = 1;
      group.start = name->number;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// The first rules as one of the network, where they are what one for all machines makes.
void take_network(const std::vector<Machine>& machines, MachineView& view) {
  if (machines.size() < 2 || view.links.empty()) return;
  std::vector<std::string> names;
  for (const Machine& machine : machines) names.push_back(machine.name);
  for (const char* channel : {"out", "in", "pair", "unlimited"}) {
    LinkRule rule = view.links.front();
    rule.from = rule.to = "*";
    rule.channel = channel;
    ClusterSpec made;
    add_network(rule, names, made);
    if (made.links.size() > view.links.size()) continue;
    const auto end = view.links.begin() + static_cast<std::ptrdiff_t>(made.links.size());
    if (!same(made.links, std::vector<LinkRule>(view.links.begin(), end))) continue;
    view.network.push_back(std::move(rule));
    view.links.erase(view.links.begin(), end);
    return;
  }
}

bool means(const MachineView& view, const std::vector<Machine>& machines, const ClusterSpec& spec) {
  ClusterSpec made;
  std::vector<std::string> names;
  for (const Machine& machine : machines) {
    add_machine(machine, made);
    names.push_back(machine.name);
  }
  for (const LinkRule& rule : view.network) add_network(rule, names, made);
  made.devices.insert(made.devices.end(), view.devices.begin(), view.devices.end());
  made.links.insert(made.links.end(), view.links.begin(), view.links.end());
  return same(made.devices, spec.devices) && same(made.links, spec.links);
}

}  // namespace

MachineView machine_view(const ClusterSpec& spec) {
  std::size_t num_devices = 0;
  std::size_t num_links = 0;
  const std::vector<Machine> machines = find_machines(spec, num_devices, num_links);
  MachineView view{.groups = group_alike(machines), .network = {}, .devices = {}, .links = {}};
  view.devices.assign(spec.devices.begin() + static_cast<std::ptrdiff_t>(num_devices),
                      spec.devices.end());
  view.links.assign(spec.links.begin() + static_cast<std::ptrdiff_t>(num_links), spec.links.end());
  take_network(machines, view);
  if (!view.groups.empty() && means(view, machines, spec)) return view;
  return {.groups = {}, .network = {}, .devices = spec.devices, .links = spec.links};
}

}  // namespace emplace
