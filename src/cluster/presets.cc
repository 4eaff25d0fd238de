// Clusters by name: reads the grammar of presets.h and writes the links as rules of a cluster file.
//
// Later rules win, so they go from general to special: PCIe between all devices, at the speed of
// the slower end; the channels of hosts; what a fabric joins or a runtime costs. The first rule is
// for every pair, so presets are fully linked. One rule for a pair of kinds, but for a DGX-1's
// mesh, which has one for each edge.
#include "cluster/presets.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/options.h"

#include "cluster/device_kinds.h"
#include "cluster/fabrics.h"
#include "cluster/machine_presets.h"
#include "cluster/runtimes.h"

namespace emplace {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

struct Part {
  std::size_t count = 1;
  const DeviceKind* kind = nullptr;
  std::string fabric = "pcie";
  Bytes memory = 0;
};

[[noreturn]] void fail_kind(std::string_view preset, const std::string& name) {
  std::vector<std::string> known;
  for (const DeviceKind& kind : built_in_device_kinds()) known.push_back(kind.name);
  fail_option("cluster '{}': unknown device kind '{}'{}; expected one of: {}", preset, name,
              suggestion(name, known), fmt::join(known, ", "));
}

// Takes the COUNT and its "x" off the front of `text`.
std::size_t take_count(std::string_view preset, std::string_view& text) {
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  std::size_t count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + digits, count);
  if (parsed.ec != std::errc{} || count < 1 || count > Cluster::kMaxDevices) {
    fail_option("cluster '{}': '{}': expected a number of devices from 1 to {}", preset,
                text.substr(0, digits), Cluster::kMaxDevices);
  }
  text.remove_prefix(digits);
  if (text.empty() || (text[0] != 'x' && text[0] != 'X')) {
    fail_option("cluster '{}': expected an 'x' after the {}, as in 4xp100", preset, count);
  }
  text.remove_prefix(1);
  return count;
}

// A kind's name may itself end like a fabric's ("h100-pcie"), so the whole is tried first.
void read_kind_and_fabric(std::string_view preset, const std::string& text, Part& part) {
  part.kind = find_device_kind(text);
  if (part.kind != nullptr) return;
  const std::size_t dash = text.rfind('-');
  const DeviceKind* kind =
      dash == std::string::npos ? nullptr : find_device_kind(text.substr(0, dash));
  if (kind == nullptr) fail_kind(preset, text);
  part.kind = kind;
  part.fabric = text.substr(dash + 1);
  if (part.fabric == "pcie") return;
  std::vector<std::string> known{"pcie"};
  for (const Fabric& fabric : fabrics()) {
    if (fabric.kind == kind->name) known.emplace_back(fabric.name);
  }
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const Runtime& runtime : runtimes_for(kind->name)) known.emplace_back(runtime.name);
  if (std::find(known.begin(), known.end(), part.fabric) != known.end()) return;
  fail_option("cluster '{}': '{}' is not a fabric that joins {} devices{}; expected {}", preset,
              part.fabric, kind->name, suggestion(part.fabric, known), fmt::join(known, " or "));
}

Part parse_part(std::string_view preset, std::string_view text) {
  if (text.empty()) fail_option("cluster '{}': expected a device kind beside each '+'", preset);
  Part part;
  if (is_digit(text[0])) part.count = take_count(preset, text);
  const std::size_t at = text.find('@');
  read_kind_and_fabric(preset, lower_case(text.substr(0, at)), part);
  part.memory = part.kind->memory;
  if (at != std::string_view::npos) {
    const auto memory = parse_bytes(text.substr(at + 1));
    if (!memory || *memory == 0) {
      fail_option("cluster '{}': memory '{}': expected a size such as 12GiB", preset,
                  text.substr(at + 1));
    }
    part.memory = *memory;
  }
  return part;
}

std::vector<Part> parse_parts(std::string_view preset) {
  if (preset.empty() || !is_digit(preset[0])) {
    fail_option("cluster '{}': expected a number of devices and their kind, as in 4xp100", preset);
  }
  std::vector<Part> parts;
  std::size_t devices = 0;
  for (std::string_view rest = preset;;) {
    const std::size_t plus = rest.find('+');
    parts.push_back(parse_part(preset, rest.substr(0, plus)));
    devices += parts.back().count;
    if (devices > Cluster::kMaxDevices) {
      fail_option("cluster '{}': has more than {} devices", preset, Cluster::kMaxDevices);
    }
    if (plus == std::string_view::npos) return parts;
    rest.remove_prefix(plus + 1);
  }
}

// The devices of one kind, which one fabric joins.
struct KindGroup {
  std::string kind;
  bool is_cpu;
  std::string fabric;
  std::vector<std::string> devices;
};

std::vector<KindGroup> add_devices(std::string_view preset, const std::vector<Part>& parts,
                                   ClusterSpec& spec) {
  std::vector<KindGroup> groups;
  std::size_t gpus = 0;
  std::size_t cpus = 0;
  for (const Part& part : parts) {
    const std::string& kind = part.kind->name;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const KindGroup& other) { return other.kind == kind; });
    if (group == groups.end())
      group = groups.insert(group, {kind, part.kind->is_cpu(), part.fabric, {}});
    if (group->fabric != part.fabric) {
      fail_option("cluster '{}': {} devices are joined by {} and by {}; expected one of the two",
                  preset, kind, group->fabric, part.fabric);
    }
    for (std::size_t i = 0; i < part.count; ++i) {
      const std::string name =
          group->is_cpu ? fmt::format("cpu{}", cpus++) : fmt::format("gpu{}", gpus++);
      spec.devices.push_back({.name = name, .kind = kind, .memory = part.memory});
      group->devices.push_back(name);
    }
  }
  return groups;
}

// Every pair can use PCIe at the slower of its two generations; CPUs take what the other end has.
// All that leaves a device goes through its one slot.
void add_pcie_rules(const std::vector<KindGroup>& groups, ClusterSpec& spec) {
  std::vector<std::pair<std::string, std::int64_t>> kinds;
  for (const KindGroup& group : groups) {
    if (!group.is_cpu) kinds.emplace_back(group.kind, pcie_bandwidth(group.kind));
  }
  std::int64_t slowest = kinds.empty() ? kSocketBandwidth : kinds.front().second;
  for (const auto& [kind, bandwidth] : kinds) slowest = std::min(slowest, bandwidth);
  spec.links.push_back({.bandwidth = slowest, .latency = kPcieLatency, .channel = "out"});
  for (const auto& [from, from_bandwidth] : kinds) {
    for (const auto& [to, to_bandwidth] : kinds) {
      const std::int64_t bandwidth = std::min(from_bandwidth, to_bandwidth);
      if (bandwidth == slowest) continue;
      spec.links.push_back({.from = from,
                            .to = to,
                            .bandwidth = bandwidth,
                            .latency = kPcieLatency,
                            .channel = "out"});
    }
  }
}

// All that leaves a host's memory shares one channel, and all that enters it another: the GPUs of a
// box hang on few root ports.
void add_host_rules(const std::vector<KindGroup>& groups, ClusterSpec& spec) {
  for (const KindGroup& host : groups) {
    if (!host.is_cpu) continue;
    for (const KindGroup& other : groups) {
      if (other.is_cpu) {
        if (host.kind == other.kind && host.devices.size() < 2) continue;
        spec.links.push_back({.from = host.kind,
                              .to = other.kind,
                              .bandwidth = kSocketBandwidth,
                              .latency = kSocketLatency});
        continue;
      }
      const LinkRule rule{.from = host.kind,
                          .to = other.kind,
                          .bandwidth = pcie_bandwidth(other.kind),
                          .latency = kPcieLatency,
                          .channel = "out"};
      spec.links.push_back(rule);
      spec.links.push_back(rule);
      std::swap(spec.links.back().from, spec.links.back().to);
      spec.links.back().channel = "in";
    }
  }
}

void add_cube_mesh(const KindGroup& group, const Fabric& fabric, ClusterSpec& spec) {
  const bool single = group.kind == "p100";
  for (const MeshEdge& edge : cube_mesh_edges()) {
    const auto a = static_cast<std::size_t>(edge.a);
    const auto b = static_cast<std::size_t>(edge.b);
    if (b >= group.devices.size()) continue;
    const LinkRule rule{.from = group.devices[a],
                        .to = group.devices[b],
                        .bandwidth = fabric.bandwidth * (single ? 1 : edge.v100_links),
                        .latency = kDirectLatency};
    spec.links.push_back(rule);
    spec.links.push_back(rule);
    std::swap(spec.links.back().from, spec.links.back().to);
  }
}

// What ops and transfers cost beside their work, on the group's devices and to and from the hosts.
void add_runtime(const Runtime& runtime, const KindGroup& group,
                 const std::vector<KindGroup>& groups, ClusterSpec& spec) {
  const auto add_rule = [&](const std::string& from, const std::string& to, std::int64_t bandwidth,
                            const char* channel) {
    spec.links.push_back({.from = from,
                          .to = to,
                          .bandwidth = bandwidth,
                          .latency = runtime.latency,
                          .hold = runtime.hold,
                          .channel = channel,
                          .multicast = runtime.multicast});
  };
  for (Device& device : spec.devices) {
    if (device.kind == group.kind) device.gap = runtime.gap;
    if (find_device_kind(device.kind)->is_cpu()) device.gap = runtime.host_gap;
  }
  if (runtime.launch_us > 0) {
    DeviceKind kind = *find_device_kind(group.kind);
    kind.launch_us = runtime.launch_us;
    kind.source += fmt::format("; launch_us as assumed for {}", runtime.name);
    spec.kinds.push_back(std::move(kind));
  }
  if (group.devices.size() > 1) add_rule(group.kind, group.kind, runtime.bandwidth, "out");
  for (const KindGroup& host : groups) {
    if (!host.is_cpu) continue;
    add_rule(host.kind, group.kind, runtime.host_bandwidth, "out");
    add_rule(group.kind, host.kind, runtime.host_bandwidth, runtime.host_receives);
  }
}

void add_fabric_rules(std::string_view preset, const KindGroup& group,
                      const std::vector<KindGroup>& groups, ClusterSpec& spec) {
  if (group.fabric == "pcie") return;
  for (const Runtime& runtime : runtimes_for(group.kind)) {
    if (runtime.name == group.fabric) return add_runtime(runtime, group, groups, spec);
  }
  if (spec.devices.size() < 2) return;
  std::size_t most = 0;
  for (const Fabric& fabric : fabrics()) {
    if (fabric.kind != group.kind || fabric.name != group.fabric) continue;
    most = fabric.max_devices;
    if (group.devices.size() > most) continue;
    if (fabric.topology == Topology::kCubeMesh) return add_cube_mesh(group, fabric, spec);
    spec.links.push_back({.from = group.kind,
                          .to = group.kind,
                          .bandwidth = fabric.bandwidth,
                          .latency = kDirectLatency,
                          .channel = fabric.topology == Topology::kSwitch ? "out" : "pair"});
    return;
  }
  fail_option("cluster '{}': {} joins at most {} {} devices; describe a larger machine in a file",
              preset, group.fabric, most, group.kind);
}

}  // namespace

bool looks_like_preset(std::string_view name) {
  std::size_t digits = 0;
  while (digits < name.size() && is_digit(name[digits])) ++digits;
  if (digits == 0 || digits + 1 >= name.size()) return false;
  if (name[digits] != 'x' && name[digits] != 'X') return false;
  if (name[digits + 1] == '(') return true;
  for (const std::string_view ending : {".yaml", ".yml", ".json", ".gz"}) {
    if (name.ends_with(ending)) return false;
  }
  const bool word = is_letter(name[digits + 1]) || is_digit(name[digits + 1]);
  return word && std::all_of(name.begin(), name.end(), [](char c) {
           return is_digit(c) || is_letter(c) || c == '+' || c == '@' || c == '.' || c == '-';
         });
}

ClusterSpec preset_cluster(std::string_view name) {
  if (name.find('(') != std::string_view::npos) return preset_machines(name);
  ClusterSpec spec;
  spec.name = name;
  const std::vector<KindGroup> groups = add_devices(name, parse_parts(name), spec);
  if (spec.devices.size() > 1) {
    add_pcie_rules(groups, spec);
    add_host_rules(groups, spec);
  }
  for (const KindGroup& group : groups) add_fabric_rules(name, group, groups, spec);
  return spec;
}

std::vector<std::string> example_presets() {
  return {"1xh200",
          "2xa100+cpu",
          "4xk80",
          "4xp100",
          "4xp100@12GiB",
          "8xv100-nvlink",
          "8xa100-nvlink",
          "4xh100-nvlink",
          "4xh100-pcie",
          "2xa100+2xt4",
          "4xk80-placeto",
          "4xk80-tf1+cpu-haswell18",
          "2x(4xa100-nvlink)@25GB/s"};
}

}  // namespace emplace
