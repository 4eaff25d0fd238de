#include "support/random_problem.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/graph_builder.h"
#include "graph/workload.h"

#include "support/reference_simulator.h"

namespace emplace {
namespace {

constexpr std::array<const char*, 2> kKinds{"fast", "slow"};
constexpr int kPlacementTries = 10;

template <class T>
T choose(Rng& rng, std::initializer_list<T> items) {
  return items.begin()[rng.below(items.size())];
}

// Microseconds. The odd ones end on half a nanosecond, or do so once slowed down.
Decimal random_time(Rng& rng) {
  return choose<Decimal>(rng, {{0, 0},
                               {1, 0},
                               {1, 0},
                               {2, 0},
                               {2, 0},
                               {3, 0},
                               {30, -1},
                               {5, -1},
                               {5, -4},
                               {15, -4},
                               {1, 1}});
}

Bytes random_size(Rng& rng) {
  return choose<Bytes>(rng, {0, 0, 1, 500, 1000, 1000, 1000, 2000, 3000, 1501});
}

class GraphMaker {
 public:
  GraphMaker(Rng& rng, const Cluster& cluster, const RandomLimits& limits)
      : rng_(rng),
        cluster_(cluster),
        builder_("random", limits.all_alive ? kDnnPartitioningSource : ""),
        home_(pick_device()) {
    zero_bytes_ = rng_.chance(0.1);
    view_chance_ = choose(rng_, {0.0, 0.15, 0.5});
    after_chance_ = choose(rng_, {0.0, 0.1, 0.4});
    source_chance_ = choose(rng_, {0.05, 0.25});
    restricted_chance_ = choose(rng_, {0.0, 0.0, 0.2});
    colocate_chance_ = choose(rng_, {0.0, 0.05, 0.3});
    local_chance_ = choose(rng_, {0.2, 0.9});
    instant_chance_ = choose(rng_, {0.0, 0.3});
    if (limits.in_place) overwriting_chance_ = choose(own_, {0.0, 0.3, 0.8});
  }

  Graph make(std::uint64_t num_ops) {
    for (std::uint64_t i = 0; i < num_ops; ++i) add_op();
    return std::move(builder_).build();
  }

 private:
  DeviceId pick_device() { return static_cast<DeviceId>(rng_.below(cluster_.num_devices())); }

  // Recent tensors more often, or any: deep graphs and wide ones.
  TensorId pick_tensor() {
    const std::uint64_t count = builder_.num_tensors();
    if (rng_.chance(local_chance_)) {
      return static_cast<TensorId>(count - 1 - rng_.below(std::min<std::uint64_t>(count, 4)));
    }
    return static_cast<TensorId>(rng_.below(count));
  }

  void add_op() {
    OpSpec spec;
    spec.name = fmt::format("op{}", builder_.num_ops());
    spec.type = "compute";
    const bool first = builder_.num_tensors() == 0;
    if (rng_.chance(first ? 0.6 : source_chance_)) {
      spec.type =
          choose<const char*>(rng_, {"parameter", "parameter", "buffer", "input", "constant"});
    } else if (!first) {
      const std::uint64_t inputs = choose<std::uint64_t>(rng_, {0, 1, 1, 1, 2, 2, 3, 5});
      for (std::uint64_t i = 0; i < inputs; ++i) spec.inputs.push_back(pick_tensor());
      if (inputs > 0 && rng_.chance(0.1)) spec.inputs.push_back(spec.inputs[0]);
      spec.view = inputs > 0 && rng_.chance(view_chance_);
      spec.phase = choose(rng_, {Phase::kForward, Phase::kForward, Phase::kForward,
                                 Phase::kBackward, Phase::kUpdate});
    }
    add_times(spec);
    add_memory(spec);
    add_rules(spec);
    const std::uint64_t outputs = choose<std::uint64_t>(rng_, {0, 1, 1, 1, 1, 2, 3});
    std::vector<TensorSpec> tensors(outputs);
    for (TensorSpec& tensor : tensors) {
      tensor.bytes = zero_bytes_ ? 0 : random_size(rng_);
      if (rng_.chance(0.2)) tensor.memory_bytes = random_size(rng_);
    }
    if (spec.type == "compute" && !spec.view && !spec.inputs.empty())
      make_overwriting(spec, tensors);
    for (const TensorSpec& tensor : tensors) {
      memory_.push_back(tensor.memory_bytes.value_or(tensor.bytes.value_or(0)));
    }
    builder_.add(spec, tensors);
  }

  // Operators that write over inputs, mostly of their result's size.
  void make_overwriting(OpSpec& spec, std::vector<TensorSpec>& outputs) {
    if (!own_.chance(overwriting_chance_)) return;
    spec.type =
        choose<const char*>(own_, {"Add", "add", "Sum", "PartSum", "PartMax", "Relu", "relu_"});
    // The newest tensor is one that nobody else reads yet.
    if (own_.chance(0.5)) spec.inputs.insert(spec.inputs.begin(), builder_.num_tensors() - 1);
    if (outputs.empty() || own_.chance(0.1)) return;
    outputs[0].memory_bytes = memory_[spec.inputs[own_.below(spec.inputs.size())]];
  }

  void add_times(OpSpec& spec) {
    // What a source or a view was measured to take must not matter.
    if ((spec.type != "compute" || spec.view) && rng_.chance(0.7)) return;
    const bool instant = rng_.chance(instant_chance_);
    for (const char* kind : kKinds) {
      spec.time_us.emplace_back(kind, instant ? Decimal{} : random_time(rng_));
    }
    if (rng_.chance(0.2)) {
      spec.time_us.emplace_back(cluster_.device(pick_device()).name, random_time(rng_));
    }
    rng_.shuffle(spec.time_us);
  }

  void add_memory(OpSpec& spec) {
    if (rng_.chance(0.2)) spec.persistent_bytes = random_size(rng_);
    if (rng_.chance(0.3)) spec.temp_bytes = random_size(rng_);
  }

  void add_rules(OpSpec& spec) {
    const OpId here = builder_.num_ops();
    while (here > 0 && rng_.chance(after_chance_)) {
      spec.after.push_back(fmt::format("op{}", rng_.below(here)));
    }
    if (rng_.chance(colocate_chance_)) {
      spec.colocate = fmt::format("shard{}", rng_.below(3));
    }
    if (rng_.chance(restricted_chance_)) {
      // All restricted ops share one device, so that no group is left without any.
      const Device& home = cluster_.device(home_);
      spec.devices.push_back(rng_.chance(0.5) ? home.name : home.kind);
      const Device& other = cluster_.device(pick_device());
      if (rng_.chance(0.5)) spec.devices.push_back(rng_.chance(0.5) ? other.name : other.kind);
    }
  }

  Rng& rng_;
  Rng own_ = rng_.split(2);  // leaves what rng_ makes as it is without
  const Cluster& cluster_;
  GraphBuilder builder_;
  std::vector<Bytes> memory_;  // by tensor
  DeviceId home_;
  bool zero_bytes_ = false;
  double view_chance_ = 0;
  double after_chance_ = 0;
  double source_chance_ = 0;
  double restricted_chance_ = 0;
  double colocate_chance_ = 0;
  double local_chance_ = 0;
  double instant_chance_ = 0;
  double overwriting_chance_ = 0;
};

LinkRule random_rule(Rng& rng) {
  LinkRule rule;
  rule.bandwidth =
      choose<std::int64_t>(rng, {1'000'000'000, 1'000'000'000, 2'000'000'000, 3'000'000'000});
  rule.latency = choose<Nanoseconds>(rng, {0, 0, 0, 1000, 2000});
  rule.hold = choose<Nanoseconds>(rng, {0, 0, 1000, 1500});
  rule.channel = choose<const char*>(rng, {"pair", "out", "out", "in", "bus", "ring"});
  rule.multicast = rng.chance(0.5);
  if (rng.split(1).chance(0.15)) {  // leaves what follows as it is without
    rule.channel = kUnlimitedChannel;
    rule.hold = 0;
    rule.multicast = false;
  }
  return rule;
}

void make_plain(ClusterSpec& spec) {
  for (Device& device : spec.devices) device.gap = 0;
  for (LinkRule& rule : spec.links) {
    rule.latency = std::max<Nanoseconds>(rule.latency, 1);
    rule.hold = 0;
    rule.multicast = false;
    if (rule.channel == kUnlimitedChannel) rule.channel = "pair";
  }
}

Cluster random_cluster(Rng& rng, const RandomLimits& limits) {
  ClusterSpec spec;
  spec.name = "random";
  for (const char* kind : kKinds) {
    DeviceKind own;
    own.name = kind;
    own.peak_flops = {{"float32", 1e12}};
    own.memory_bandwidth = 1e11;
    own.memory = 1'000'000;
    spec.kinds.push_back(own);
  }
  const std::uint64_t num_devices = 1 + rng.below(limits.max_devices);
  const bool gaps = rng.chance(0.5);
  const auto pattern = [&]() -> std::string {
    if (rng.chance(0.3)) return "*";
    const Device& device = spec.devices[rng.below(spec.devices.size())];
    return rng.chance(0.3) ? device.kind : device.name;
  };
  for (std::uint64_t i = 0; i < num_devices; ++i) {
    Device device;
    device.name = fmt::format("gpu{}", i);
    device.kind = kKinds[rng.below(kKinds.size())];
    device.memory = choose<Bytes>(rng, {0, 1000, 3000, 10'000, kUnlimited});
    if (limits.roomy) device.memory = kUnlimited;
    if (gaps) device.gap = choose<Nanoseconds>(rng, {0, 500, 1000, 5700});
    device.slowdown = choose<Decimal>(rng, {{1, 0}, {1, 0}, {1, 0}, {2, 0}, {15, -1}, {1, -3}});
    device.free_communication = rng.chance(0.2);
    spec.devices.push_back(device);
  }
  // Without the first rule some pairs may have no link.
  if (rng.chance(0.9)) spec.links.push_back(random_rule(rng));
  for (std::uint64_t i = rng.below(4); i > 0; --i) {
    LinkRule rule = random_rule(rng);
    rule.from = pattern();
    rule.to = pattern();
    spec.links.push_back(rule);
  }
  if (limits.plain) make_plain(spec);
  return Cluster(std::move(spec));
}

}  // namespace

std::shared_ptr<const Problem> random_problem(Rng& rng, const RandomLimits& limits) {
  Rng in_place_of = rng.split(3);
  auto cluster = std::make_shared<const Cluster>(random_cluster(rng, limits));
  const std::uint64_t num_ops = 1 + rng.below(limits.max_ops);
  auto graph = std::make_shared<const Graph>(GraphMaker(rng, *cluster, limits).make(num_ops));
  const InPlace in_place =
      limits.in_place
          ? choose(in_place_of, {InPlace::kNone, InPlace::kSums, InPlace::kSums, InPlace::kAll})
          : InPlace::kNone;
  return compile(std::move(graph), std::move(cluster),
                 CompileOptions{.cost = CostMode::kMeasured, .in_place = in_place});
}

Placement random_placement(const Problem& problem, Rng& rng) {
  const std::uint64_t spread = 1 + rng.below(problem.num_devices());
  for (int i = 0; i < kPlacementTries; ++i) {
    std::vector<DeviceId> device_of(problem.num_groups());
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      const auto allowed = problem.allowed_devices(group);
      device_of[group] = allowed[rng.below(std::min<std::uint64_t>(allowed.size(), spread))];
    }
    Placement placement(problem.num_ops());
    for (OpId op = 0; op < problem.num_ops(); ++op) placement[op] = device_of[problem.group_of(op)];
    if (reference::refusal(problem.graph(), problem.cluster(), placement).empty()) return placement;
  }
  // Links are missing where they are needed. One device may always hold everything (add_rules).
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    Placement placement(problem.num_ops(), device);
    if (reference::refusal(problem.graph(), problem.cluster(), placement).empty()) return placement;
  }
  throw std::logic_error("random_placement: no device may hold everything");
}

Schedule random_schedule(const Problem& problem, Rng& rng) {
  Schedule schedule;
  if (rng.chance(0.4)) return schedule;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    schedule.priorities.push_back(static_cast<std::int64_t>(rng.below(5)) - 2);
  }
  return schedule;
}

namespace {

std::string describe_op(const Graph& graph, OpId op) {
  std::string text = fmt::format("{} {}: in", graph.op_name(op), graph.type(op));
  for (const TensorId tensor : graph.inputs(op)) text += fmt::format(" t{}", tensor);
  text += ", out";
  for (const TensorId tensor : graph.outputs(op)) {
    text += fmt::format(" t{}({} B", tensor, graph.bytes(tensor));
    if (graph.memory_bytes(tensor) != graph.bytes(tensor)) {
      text += fmt::format(", {} in memory", graph.memory_bytes(tensor));
    }
    text += ")";
  }
  for (const OpId before : graph.after(op))
    text += fmt::format(", after {}", graph.op_name(before));
  for (const MeasuredTime& time : graph.measured_times(op)) {
    text += fmt::format(", {}us on {}", time.microseconds.to_string(),
                        graph.strings().get(time.device));
  }
  if (graph.is_view(op)) text += ", view";
  if (graph.phase(op) != Phase::kForward) text += fmt::format(", {}", phase_name(graph.phase(op)));
  if (graph.persistent_bytes(op) != 0) {
    text += fmt::format(", persistent {}", graph.persistent_bytes(op));
  }
  if (graph.temp_bytes(op) != 0) text += fmt::format(", temp {}", graph.temp_bytes(op));
  if (!graph.colocate(op).empty()) text += fmt::format(", colocate {}", graph.colocate(op));
  for (const StringId allowed : graph.allowed_devices(op)) {
    text += fmt::format(", may use {}", graph.strings().get(allowed));
  }
  return text;
}

}  // namespace

std::string describe(const Problem& problem, const Placement& placement, const Schedule& schedule) {
  const Graph& graph = problem.graph();
  const Cluster& cluster = problem.cluster();
  std::string text;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const Device& device = cluster.device(id);
    text += fmt::format("device {} {} {}: memory {}, gap {}, slowdown {}{}\n", id, device.name,
                        device.kind, device.memory, device.gap, device.slowdown.to_string(),
                        device.free_communication ? ", free communication" : "");
  }
  for (const LinkRule& rule : cluster.spec().links) {
    text += fmt::format("link {} -> {}: {} B/s, latency {}, hold {}, channel {}{}\n", rule.from,
                        rule.to, rule.bandwidth, rule.latency, rule.hold, rule.channel,
                        rule.multicast ? ", multicast" : "");
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    text += describe_op(graph, op);
    if (op < placement.size()) text += fmt::format(", on device {}", placement[op]);
    if (!schedule.fifo()) text += fmt::format(", priority {}", schedule.priorities[op]);
    text += "\n";
  }
  return text;
}

}  // namespace emplace
