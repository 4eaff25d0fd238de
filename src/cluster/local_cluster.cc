#include "cluster/local_cluster.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/decimal.h"
#include "base/error.h"

#include "cluster/core_groups.h"
#include "cluster/fabrics.h"
#include "cluster/runs_on.h"

namespace emplace {
namespace {

constexpr std::string_view kLocal = "local";
constexpr Bytes kMiB = Bytes{1} << 20;

// A copy from memory to memory by one core, whose buffers are in no cache.
constexpr LocalLink kCopy{5'000'000'000, 5'000};

// The rest is for what is neither a tensor nor ours.
constexpr double kMemoryForTensors = 0.8;

// What is needed beside the cores of CPUs.
int cores_for_threads(std::size_t devices, std::size_t gpus) {
  return static_cast<int>((devices > 1 ? devices + 1 : 0) + gpus);
}

struct CoreNeeds {
  int of_cpus = 0;
  int for_threads = 0;

  int total() const { return of_cpus + for_threads; }
};

// Of all ranks that have devices of their own.
CoreNeeds core_needs(const ClusterSpec& spec) {
  CoreNeeds needs;
  std::size_t gpus = 0;
  std::size_t ranks = 1;
  const auto add = [&](const std::string& place) {
    const RunsOn where = parse_runs_on(place);
    if (!where.cuda) needs.of_cpus += static_cast<int>(where.cores.size());
    return where.cuda.has_value();
  };
  for (const Device& device : spec.devices) {
    if (device.runs_on.empty()) continue;
    gpus += add(device.runs_on) ? 1 : 0;
    for (const std::string& place : device.also_runs_on) add(place);
    ranks = 1 + device.also_runs_on.size();
  }
  needs.for_threads = static_cast<int>(ranks) * cores_for_threads(spec.devices.size(), gpus);
  return needs;
}

void add_kind(const DeviceKind& kind, ClusterSpec& spec) {
  const bool known = std::any_of(spec.kinds.begin(), spec.kinds.end(),
                                 [&](const DeviceKind& other) { return other.name == kind.name; });
  if (!known) spec.kinds.push_back(kind);
}

// The first rank's, beside which each other rank has its own.
void add_gpus(const std::vector<LocalGpu>& gpus, std::size_t ranks, LocalCluster& cluster) {
  if (gpus.size() % ranks != 0) {
    fail_input("{} GPUs cannot be divided among {} ranks; expected as many for each, or none",
               gpus.size(), ranks);
  }
  const std::size_t each = gpus.size() / ranks;
  for (std::size_t i = 0; i < each; ++i) {
    const LocalGpu& gpu = gpus[i];
    const GpuKind found = kind_of_local_gpu(gpu);
    const std::string name = fmt::format("gpu{}", gpu.index);
    if (!found.built_in) {
      add_kind(found.kind, cluster.spec);
      cluster.warnings.push_back(
          fmt::format("{} is '{}', which is no built-in kind: its figures are {}", name, gpu.name,
                      found.kind.source));
    }
    cluster.spec.devices.push_back({.name = name,
                                    .kind = found.kind.name,
                                    .memory = gpu.memory,
                                    .runs_on = fmt::format("cuda:{}", gpu.index)});
    Device& device = cluster.spec.devices.back();
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      const LocalGpu& other = gpus[rank * each + i];
      if (other.name != gpu.name) {
        fail_input("ranks cannot have the same devices: cuda:{} is '{}', and cuda:{} is '{}'",
                   gpu.index, gpu.name, other.index, other.name);
      }
      device.memory = std::min(device.memory, other.memory);
      device.also_runs_on.push_back(fmt::format("cuda:{}", other.index));
    }
  }
}

void add_cpus(const LocalMachine& machine, const LocalOptions& options, ClusterSpec& spec) {
  const std::size_t gpus = spec.devices.size();
  const int spare =
      static_cast<int>(machine.cores.size()) / options.ranks - cores_for_threads(gpus + 1, gpus);
  const std::vector<int> sizes =
      options.groups.empty() ? std::vector{std::max(1, spare)} : options.groups;
  std::vector<int> of_all_ranks;
  for (int rank = 0; rank < options.ranks; ++rank) {
    of_all_ranks.insert(of_all_ranks.end(), sizes.begin(), sizes.end());
  }
  const auto groups = divide_cores(machine, of_all_ranks, options.oversubscribe);
  const int cores = std::accumulate(of_all_ranks.begin(), of_all_ranks.end(), 0);
  const double per_core = static_cast<double>(machine.memory) * kMemoryForTensors / cores;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto memory = static_cast<Bytes>(per_core * sizes[i]) / kMiB * kMiB;
    const DeviceKind kind = kind_of_cores(machine, sizes[i], memory > 0 ? memory : kUnlimited);
    add_kind(kind, spec);
    spec.devices.push_back({.name = fmt::format("cpu{}", i),
                            .kind = kind.name,
                            .memory = kind.memory,
                            .runs_on = runs_on_text({.cores = groups[i], .cuda = {}})});
    for (std::size_t other = i + sizes.size(); other < groups.size(); other += sizes.size()) {
      spec.devices.back().also_runs_on.push_back(
          runs_on_text({.cores = groups[other], .cuda = {}}));
    }
  }
}

// One way, over the fabric that joins GPUs of the kind, if there is one.
std::int64_t direct_bandwidth(const std::string& kind) {
  std::int64_t bandwidth = pcie_bandwidth(kind);
  for (const Fabric& fabric : fabrics()) {
    if (fabric.kind == kind) bandwidth = std::max(bandwidth, fabric.bandwidth);
  }
  return bandwidth;
}

// From a GPU to another. Tensors between two that cannot reach each other go through the host's
// memory, in two copies.
LinkRule gpu_rule(const Device& from, const Device& to, bool peers) {
  LinkRule rule{.from = from.name, .to = to.name, .channel = "out"};
  const std::int64_t pcie = std::min(pcie_bandwidth(from.kind), pcie_bandwidth(to.kind));
  const bool joined = peers && from.kind == to.kind;
  rule.bandwidth = joined ? direct_bandwidth(from.kind) : peers ? pcie : pcie / 2;
  rule.latency = joined ? kDirectLatency : peers ? kPcieLatency : 2 * kPcieLatency;
  return rule;
}

// One rule for all that a GPU reaches alike.
void add_rules_from(const LocalGpu& from, const std::vector<LocalGpu>& gpus, ClusterSpec& spec) {
  const auto device = [&](const LocalGpu& gpu) {
    return spec.devices[static_cast<std::size_t>(&gpu - gpus.data())];
  };
  const std::size_t first = spec.links.size();
  for (const LocalGpu& to : gpus) {
    if (to.index == from.index) continue;
    const bool peers =
        std::find(from.peers.begin(), from.peers.end(), to.index) != from.peers.end();
    const LinkRule rule = gpu_rule(device(from), device(to), peers);
    const auto alike =
        std::find_if(spec.links.begin() + static_cast<std::ptrdiff_t>(first), spec.links.end(),
                     [&](const LinkRule& other) {
                       return other.bandwidth == rule.bandwidth && other.latency == rule.latency;
                     });
    if (alike == spec.links.end()) {
      spec.links.push_back(rule);
    } else {
      alike->to += ", " + rule.to;
    }
  }
}

void add_gpu_links(const std::vector<LocalGpu>& gpus, ClusterSpec& spec) {
  std::vector<std::string> kinds;
  for (std::size_t i = 0; i < gpus.size(); ++i) kinds.push_back(spec.devices[i].kind);
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  for (const std::string& kind : kinds) {
    const LinkRule rule{
        .from = kind, .bandwidth = pcie_bandwidth(kind), .latency = kPcieLatency, .channel = "out"};
    spec.links.push_back(rule);
    spec.links.push_back(rule);
    std::swap(spec.links.back().from, spec.links.back().to);
  }
  for (const LocalGpu& gpu : gpus) add_rules_from(gpu, gpus, spec);
}

void add_local_links(const LocalOptions& options, const std::vector<LocalGpu>& gpus,
                     ClusterSpec& spec) {
  if (spec.devices.size() < 2) return;
  const LocalLink all = options.link.value_or(kCopy);
  spec.links.push_back({.bandwidth = all.bandwidth,
                        .latency = all.latency,
                        .channel = "out",
                        .throttled = options.link.has_value()});
  if (!options.link) add_gpu_links(gpus, spec);
}

// 4 of 3 cores and 1 of 8 as "4x3+1x8".
std::string groups_text(const std::vector<int>& sizes) {
  std::string text;
  for (std::size_t i = 0; i < sizes.size();) {
    std::size_t end = i;
    while (end < sizes.size() && sizes[end] == sizes[i]) ++end;
    text += fmt::format("{}{}x{}", text.empty() ? "" : "+", end - i, sizes[i]);
    i = end;
  }
  return text;
}

[[noreturn]] void fail_link(std::string_view text) {
  fail_option("link '{}': expected a bandwidth, and a latency, such as 1GB/s,50us", text);
}

std::optional<Nanoseconds> parse_latency(std::string_view text) {
  const std::size_t unit = text.find_first_not_of("0123456789.");
  if (unit == std::string_view::npos) return std::nullopt;
  const auto number = Decimal::parse(text.substr(0, unit));
  const std::string_view name = text.substr(unit);
  const std::int64_t scale = name == "ns" ? 1 : name == "us" ? 1'000 : name == "ms" ? 1'000'000 : 0;
  return number && scale > 0 ? round_half_up(*number, scale) : std::nullopt;
}

}  // namespace

LocalCluster local_cluster(const LocalMachine& machine, const LocalOptions& options,
                           const std::vector<LocalGpu>& all_gpus) {
  LocalCluster cluster;
  cluster.spec.name = kLocal;
  if (!options.groups.empty()) cluster.spec.name += ":" + groups_text(options.groups);
  const auto ranks = static_cast<std::size_t>(options.ranks);
  add_gpus(all_gpus, ranks, cluster);
  const std::vector<LocalGpu> gpus(
      all_gpus.begin(), all_gpus.begin() + static_cast<std::ptrdiff_t>(all_gpus.size() / ranks));
  add_cpus(machine, options, cluster.spec);
  add_local_links(options, gpus, cluster.spec);
  if (auto shortage = core_shortage(cluster.spec, machine)) {
    cluster.warnings.push_back(std::move(*shortage));
  }
  return cluster;
}

LocalCluster local_cluster(const LocalOptions& options, const std::vector<LocalGpu>& gpus) {
  return local_cluster(this_machine(), options, gpus);
}

int needed_cores(const ClusterSpec& spec) {
  return core_needs(spec).total();
}

std::optional<std::string> core_shortage(const ClusterSpec& spec, const LocalMachine& machine) {
  const CoreNeeds needs = core_needs(spec);
  const int have = static_cast<int>(machine.cores.size());
  if (needs.total() <= have) return std::nullopt;
  return fmt::format(
      "executing steps on these devices takes {} cores ({} of CPUs, {} for threads that send, "
      "launch "
      "and drive), and {} can be used: measured times will mislead",
      needs.total(), needs.of_cpus, needs.for_threads, have);
}

LocalLink parse_local_link(std::string_view text) {
  const std::size_t comma = text.find(',');
  const auto bandwidth = parse_bandwidth(text.substr(0, comma));
  if (!bandwidth || *bandwidth == 0) fail_link(text);
  if (comma == std::string_view::npos) return {*bandwidth, kCopy.latency};
  const auto latency = parse_latency(text.substr(comma + 1));
  if (!latency) fail_link(text);
  return {*bandwidth, *latency};
}

bool is_local_name(std::string_view name) {
  return name == kLocal || (name.starts_with(kLocal) && name.substr(kLocal.size()).front() == ':');
}

LocalOptions parse_local_name(std::string_view name) {
  LocalOptions options;
  if (name == kLocal) return options;
  options.groups = with_context(fmt::format("cluster '{}'", name),
                                [&] { return parse_core_groups(name.substr(kLocal.size() + 1)); });
  return options;
}

}  // namespace emplace
