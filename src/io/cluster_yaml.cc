// emplace.cluster/1 in (docs/clusters.md). Errors name the line, the object and the field; fields
// that the format does not have are refused. Sizes and times are exact decimals until they are
// rounded, once, to integers.
#include <iterator>
#include <string_view>
#include <utility>

#include "cluster/fabrics.h"
#include "cluster/machines.h"
#include "cluster/presets.h"

#include "io/cluster_yaml_fields.h"
#include "io/cluster_yaml_kinds.h"
#include "io/readers.h"

namespace emplace {
namespace {

constexpr const char* kClusterFormat = "emplace.cluster/1";

// "gpu" and a count of two: gpu0, gpu1. Without a count, the name itself.
std::vector<std::string> numbered_names(const std::string& stem, YamlFields& fields) {
  const auto count = fields.count("count", 1, Cluster::kMaxDevices);
  constexpr std::size_t kMaxStart = 1'000'000;
  const auto start = fields.count("start", 0, kMaxStart);
  if (start && !count) {
    fail_input("line {}: {}: start: is given without a count", fields.line(), fields.what());
  }
  if (!count) return {stem};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < *count; ++i) {
    names.push_back(fmt::format("{}{}", stem, start.value_or(0) + i));
  }
  return names;
}

// One place, or one for each rank that measures steps.
void read_places(YamlFields& fields, Device& device) {
  std::vector<std::string> places = fields.texts("runs_on");
  if (places.empty()) return;
  device.runs_on = std::move(places.front());
  device.also_runs_on.assign(std::make_move_iterator(places.begin() + 1),
                             std::make_move_iterator(places.end()));
}

void read_device(const YAML::Node& node, const std::vector<DeviceKind>& kinds,
                 std::vector<Device>& devices) {
  YamlFields fields(node, fmt::format("device {}", devices.size()));
  Device device;
  device.name = fields.required_text("name", "gpu0");
  fields.rename(fmt::format("device '{}'", device.name));
  device.kind = fields.required_text("kind", "p100");
  device.memory = memory_of_device(device.kind, kinds, fields);
  device.gap = fields.microseconds("gap_us").value_or(0);
  device.slowdown = fields.decimal("slowdown").value_or(Decimal{1, 0});
  device.free_communication = fields.flag("free_communication").value_or(false);
  read_places(fields, device);
  const std::vector<std::string> names = numbered_names(device.name, fields);
  fields.refuse_others();
  for (const std::string& name : names) {
    device.name = name;
    devices.push_back(device);
  }
}

// `usual` has what a rule need not say.
LinkRule read_link(const YAML::Node& node, const std::string& what, const LinkRule& usual) {
  YamlFields fields(node, what);
  LinkRule rule = usual;
  rule.from = fields.list("from").value_or("*");
  rule.to = fields.list("to").value_or("*");
  fields.rename(fmt::format("{} {} -> {}", what.substr(0, what.find(' ')), rule.from, rule.to));
  const auto bandwidth = fields.bandwidth("bandwidth");
  if (!bandwidth) {
    fail_input("line {}: {}: bandwidth: is missing; expected one such as 12GB/s", fields.line(),
               fields.what());
  }
  rule.bandwidth = *bandwidth;
  rule.latency = fields.microseconds("latency_us").value_or(usual.latency);
  rule.hold = fields.microseconds("hold_us").value_or(usual.hold);
  rule.channel = fields.text("channel").value_or(usual.channel);
  rule.multicast = fields.flag("multicast").value_or(usual.multicast);
  rule.throttled = fields.flag("throttled").value_or(usual.throttled);
  fields.refuse_others();
  return rule;
}

std::vector<LinkRule> read_links(YamlFields& fields, const char* field, const char* what,
                                 const LinkRule& usual = {}) {
  std::vector<LinkRule> rules;
  for (const YAML::Node& node : fields.entries(field, "a list of rules")) {
    rules.push_back(read_link(node, fmt::format("{} {}", what, rules.size()), usual));
  }
  return rules;
}

// Devices and links of its own, or those of a preset.
Machine read_machine_parts(YamlFields& fields, ClusterSpec& spec) {
  Machine machine;
  for (const YAML::Node& device : fields.entries("devices", "a list of one device or more")) {
    read_device(device, spec.kinds, machine.devices);
  }
  machine.links = read_links(fields, "links", "link");
  const auto preset = fields.text("preset");
  if (!preset) {
    if (machine.devices.empty()) {
      fail_input("line {}: {}: expected devices, or a preset such as 4xa100-nvlink", fields.line(),
                 fields.what());
    }
    return machine;
  }
  if (!machine.devices.empty()) {
    fail_input("line {}: {}: has both devices and a preset; expected one of them", fields.line(),
               fields.what());
  }
  const ClusterSpec made = with_context(fmt::format("line {}: {}", fields.line(), fields.what()),
                                        [&] { return preset_cluster(*preset); });
  for (const DeviceKind& kind : made.kinds) {
    if (find_kind(spec.kinds, kind.name) == find_kind({}, kind.name)) spec.kinds.push_back(kind);
  }
  machine.devices = made.devices;
  machine.links.insert(machine.links.begin(), made.links.begin(), made.links.end());
  return machine;
}

std::vector<std::string> read_machines(YamlFields& cluster, ClusterSpec& spec) {
  std::vector<std::string> machines;
  for (const YAML::Node& node : cluster.entries("machines", "a list of machines")) {
    YamlFields fields(node, fmt::format("machine {}", machines.size()));
    const std::string stem = fields.required_text("name", "node");
    fields.rename(fmt::format("machine '{}'", stem));
    const std::vector<std::string> names = numbered_names(stem, fields);
    Machine machine = read_machine_parts(fields, spec);
    fields.refuse_others();
    for (const std::string& name : names) {
      machine.name = name;
      add_machine(machine, spec);
      machines.push_back(name);
    }
  }
  return machines;
}

void read_network(YamlFields& cluster, const std::vector<std::string>& machines,
                  ClusterSpec& spec) {
  const LinkRule usual{.latency = kNetworkLatency, .channel = "out"};
  for (const LinkRule& rule : read_links(cluster, "network", "network", usual)) {
    if (machines.empty()) fail_input("network: joins machines, and the cluster has none");
    add_network(rule, machines, spec);
  }
}

ClusterSpec read_spec(const YAML::Node& root, const std::string& name) {
  YamlFields fields(root, "cluster");
  const std::string format = fields.required_text("format", kClusterFormat);
  if (format != kClusterFormat) {
    fields.fail_field(root["format"], "format", "'{}': expected {}", format, kClusterFormat);
  }
  ClusterSpec spec;
  spec.name = fields.text("name").value_or(name);
  spec.kinds = read_kinds(fields.find("kinds"));
  const std::vector<std::string> machines = read_machines(fields, spec);
  read_network(fields, machines, spec);
  for (const YAML::Node& device : fields.entries("devices", "a list of one device or more")) {
    read_device(device, spec.kinds, spec.devices);
  }
  const std::vector<LinkRule> links = read_links(fields, "links", "link");
  spec.links.insert(spec.links.end(), links.begin(), links.end());
  fields.refuse_others();
  if (spec.devices.empty()) {
    fields.fail_field(fields.find("devices"), "devices",
                      "expected a list of one device or more, or machines");
  }
  return spec;
}

}  // namespace

Cluster read_cluster_yaml(const std::string& text, const std::string& name) {
  const YAML::Node root = load_yaml(text, kClusterFormat);
  return Cluster(read_spec(root, name));
}

}  // namespace emplace
