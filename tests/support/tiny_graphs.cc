#include "support/tiny_graphs.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "graph/graph_builder.h"

namespace emplace {
namespace {

constexpr Bytes kTensor = 100'000;  // 100 us at 1 GB/s

class TinyBuilder {
 public:
  explicit TinyBuilder(const std::string& name) : builder_(name) {}

  // An op of one output; its time is for "fast".
  TensorId op(const std::string& name, std::int64_t time_us, std::vector<TensorId> inputs,
              OpSpec extra = {}) {
    extra.name = name;
    extra.type = extra.type.empty() ? "compute" : extra.type;
    extra.inputs = std::move(inputs);
    extra.time_us = {{"fast", {time_us, 0}}, {"slow", {2 * time_us, 0}}};
    return builder_.add(std::move(extra), {{.bytes = kTensor}})[0];
  }

  TensorId source(const std::string& name, const std::string& type, Bytes bytes = kTensor) {
    OpSpec spec;
    spec.name = name;
    spec.type = type;
    return builder_.add(std::move(spec), {{.bytes = bytes}})[0];
  }

  GraphBuilder& raw() { return builder_; }
  Graph build() { return std::move(builder_).build(); }

 private:
  GraphBuilder builder_;
};

Device device(const std::string& name, const std::string& kind, Bytes memory) {
  Device result;
  result.name = name;
  result.kind = kind;
  result.memory = memory;
  return result;
}

LinkRule everywhere(std::int64_t bandwidth, Nanoseconds latency) {
  LinkRule rule;
  rule.bandwidth = bandwidth;
  rule.latency = latency;
  return rule;
}

Cluster make_cluster(const std::string& name, std::vector<Device> devices,
                     std::vector<LinkRule> links) {
  ClusterSpec spec;
  spec.name = name;
  for (const char* kind : {"fast", "slow"}) {
    DeviceKind own;
    own.name = kind;
    own.peak_flops = {{"float32", 1e12}};
    own.memory_bandwidth = 1e11;
    own.memory = 1'000'000'000;
    spec.kinds.push_back(std::move(own));
  }
  spec.devices = std::move(devices);
  spec.links = std::move(links);
  return Cluster(std::move(spec));
}

OpSpec update_of(const std::string& colocate = "") {
  OpSpec spec;
  spec.type = "sgd";
  spec.phase = Phase::kUpdate;
  spec.colocate = colocate;
  return spec;
}

OpSpec backward() {
  OpSpec spec;
  spec.phase = Phase::kBackward;
  return spec;
}

}  // namespace

// a
Graph one_op() {
  TinyBuilder builder("one_op");
  builder.op("a", 100, {});
  return builder.build();
}

// x ─ a ─ b ─ c ─ d
Graph chain() {
  TinyBuilder builder("chain");
  TensorId at = builder.source("x", "input");
  for (const char* name : {"a", "b", "c", "d"}) at = builder.op(name, 100, {at});
  return builder.build();
}

//       ┌ b ┐
// x ─ a ┤   ├ d
//       └ c ┘
Graph diamond() {
  TinyBuilder builder("diamond");
  const TensorId a = builder.op("a", 100, {builder.source("x", "input")});
  const TensorId b = builder.op("b", 500, {a});
  const TensorId c = builder.op("c", 400, {a});
  builder.op("d", 100, {b, c});
  return builder.build();
}

//        ┌ b0 ┐
//        ├ b1 ┤
// fork ──┤ .. ├── join      one tensor, eight readers
//        └ b7 ┘
Graph fork_join() {
  TinyBuilder builder("fork_join");
  const TensorId fork = builder.op("fork", 50, {});
  std::vector<TensorId> branches;
  for (int i = 0; i < 8; ++i) branches.push_back(builder.op(fmt::format("b{}", i), 300, {fork}));
  builder.op("join", 50, branches);
  return builder.build();
}

// a0 ─ a1 ─ a2
// b0 ─ b1 ─ b2
Graph two_chains() {
  TinyBuilder builder("two_chains");
  for (const char* name : {"a", "b"}) {
    TensorId at = builder.op(fmt::format("{}0", name), 200, {});
    at = builder.op(fmt::format("{}1", name), 200, {at});
    builder.op(fmt::format("{}2", name), 200, {at});
  }
  return builder.build();
}

// a   b   c   d   e         (no edges, and e has not even an output)
Graph disconnected() {
  TinyBuilder builder("disconnected");
  for (const char* name : {"a", "b", "c", "d"}) builder.op(name, 100, {});
  OpSpec lonely;
  lonely.name = "e";
  lonely.type = "compute";
  lonely.time_us = {{"fast", {100, 0}}, {"slow", {200, 0}}};
  builder.raw().add_op(lonely);
  return builder.build();
}

// x ─ (view) v ─ z          z was measured to take no time
Graph nothing_takes_time() {
  TinyBuilder builder("nothing_takes_time");
  const TensorId x = builder.source("x", "input");
  OpSpec view;
  view.view = true;
  builder.op("z", 0, {builder.op("v", 0, {x}, view)});
  return builder.build();
}

// x ─ a ─ (view) v0 ─ (view) v1 ─ b
//                └──────────────── c
Graph view_chain() {
  TinyBuilder builder("view_chain");
  OpSpec view;
  view.view = true;
  const TensorId a = builder.op("a", 100, {builder.source("x", "input")});
  const TensorId v0 = builder.op("v0", 0, {a}, view);
  const TensorId v1 = builder.op("v1", 0, {v0}, view);
  builder.op("b", 300, {v1});
  builder.op("c", 300, {v0});
  return builder.build();
}

// a ┄ b ┄ c                 control dependencies alone
// └┄┄┄┄┄┄┄ d
Graph only_control() {
  TinyBuilder builder("only_control");
  const auto after = [](const char* name) {
    OpSpec spec;
    spec.after = {name};
    return spec;
  };
  builder.op("a", 100, {});
  builder.op("b", 100, {}, after("a"));
  builder.op("c", 100, {}, after("b"));
  builder.op("d", 100, {}, after("a"));
  return builder.build();
}

// w0  w1  w2  w3            1.5 MB each
//  │   │   │   │
// m0 ─ m1 ─ m2 ─ m3
Graph big_parameters() {
  TinyBuilder builder("big_parameters");
  std::vector<TensorId> weights;
  for (int i = 0; i < 4; ++i) {
    weights.push_back(builder.source(fmt::format("w{}", i), "parameter", 1'500'000));
  }
  TensorId at = builder.op("m0", 100, {weights[0]});
  for (std::size_t i = 1; i < 4; ++i) {
    at = builder.op(fmt::format("m{}", i), 100, {at, weights[i]});
  }
  return builder.build();
}

// x ─ f0 ─ f1 ─ loss ─ g1 ─ g0
//     │    │           │    │
//     w0   w1 ──────── u1   u0 (with w0)
Graph training_step() {
  TinyBuilder builder("training_step");
  const TensorId x = builder.source("x", "input");
  const TensorId w0 = builder.source("w0", "parameter");
  const TensorId w1 = builder.source("w1", "parameter");
  const TensorId f0 = builder.op("f0", 200, {x, w0});
  const TensorId f1 = builder.op("f1", 200, {f0, w1});
  const TensorId loss = builder.op("loss", 20, {f1});
  const TensorId g1 = builder.op("g1", 400, {loss, f0, w1}, backward());
  builder.op("u1", 50, {w1, g1}, update_of());
  const TensorId g0 = builder.op("g0", 400, {g1, x, w0}, backward());
  builder.op("u0", 50, {w0, g0}, update_of());
  return builder.build();
}

// a(s) ─ b(t) ─ c(s) ─ d(t) ─ e      ops with one letter in brackets share a device
Graph named_shards() {
  TinyBuilder builder("named_shards");
  const auto shard = [](const char* name) {
    OpSpec spec;
    spec.colocate = name;
    return spec;
  };
  const TensorId a = builder.op("a", 100, {}, shard("s"));
  const TensorId b = builder.op("b", 100, {a}, shard("t"));
  const TensorId c = builder.op("c", 100, {b}, shard("s"));
  const TensorId d = builder.op("d", 100, {c}, shard("t"));
  builder.op("e", 100, {d});
  return builder.build();
}

// first ─ a ─ b ─ last               first: first device only; last: last device only
Graph pinned_ends(const Cluster& cluster) {
  TinyBuilder builder("pinned_ends");
  OpSpec first;
  first.devices = {cluster.device(0).name};
  OpSpec last;
  last.devices = {cluster.device(static_cast<DeviceId>(cluster.num_devices() - 1)).name};
  TensorId at = builder.op("first", 100, {}, first);
  at = builder.op("a", 100, {at});
  at = builder.op("b", 100, {at});
  builder.op("last", 100, {at}, last);
  return builder.build();
}

Cluster one_device() {
  return make_cluster("one_device", {device("gpu0", "fast", 1'000'000'000)}, {});
}

Cluster two_equal() {
  return make_cluster(
      "two_equal", {device("gpu0", "fast", 1'000'000'000), device("gpu1", "fast", 1'000'000'000)},
      {everywhere(10'000'000'000, 1'000)});
}

// A transfer takes longer than most graphs.
Cluster two_far_apart() {
  return make_cluster(
      "two_far_apart",
      {device("gpu0", "fast", 1'000'000'000), device("gpu1", "fast", 1'000'000'000)},
      {everywhere(10'000'000, 1'000'000)});
}

Cluster three_unequal() {
  std::vector<Device> devices{device("gpu0", "slow", 1'000'000'000),
                              device("gpu1", "fast", 1'000'000'000),
                              device("cpu0", "slow", kUnlimited)};
  devices[2].slowdown = {25, -1};
  devices[2].free_communication = true;
  LinkRule host = everywhere(1'000'000'000, 10'000);
  host.from = "cpu0";
  host.channel = "host";
  return make_cluster("three_unequal", std::move(devices),
                      {everywhere(5'000'000'000, 2'000), std::move(host)});
}

// The settings of docs/simulator.md's worked examples.
Cluster four_on_a_bus() {
  std::vector<Device> devices;
  for (int i = 0; i < 4; ++i) {
    devices.push_back(device(fmt::format("gpu{}", i), "fast", 1'000'000'000));
    devices.back().gap = 5'700;
  }
  LinkRule bus = everywhere(7'600'000'000, 0);
  bus.hold = 25'000;
  bus.channel = "out";
  bus.multicast = true;
  return make_cluster("four_on_a_bus", std::move(devices), {std::move(bus)});
}

// Room for two of big_parameters' four weights, and for what flows between the ops.
Cluster two_tight() {
  return make_cluster("two_tight",
                      {device("gpu0", "fast", 3'500'000), device("gpu1", "fast", 3'500'000)},
                      {everywhere(10'000'000'000, 1'000)});
}

// Less than one tensor: only graphs without data fit.
Cluster two_with_no_room() {
  return make_cluster("two_with_no_room", {device("gpu0", "fast", 10), device("gpu1", "slow", 20)},
                      {everywhere(10'000'000'000, 1'000)});
}

const std::vector<TinyCase>& tiny_cases() {
  static const std::vector<TinyCase> cases = [] {
    std::vector<TinyCase> filled;
    for (const auto& make_one : {one_device, two_equal, two_far_apart, three_unequal, four_on_a_bus,
                                 two_tight, two_with_no_room}) {
      const auto cluster = std::make_shared<const Cluster>(make_one());
      std::vector<Graph> graphs;
      for (const auto& make_graph :
           {one_op, chain, diamond, fork_join, two_chains, disconnected, nothing_takes_time,
            view_chain, only_control, big_parameters, training_step, named_shards}) {
        graphs.push_back(make_graph());
      }
      graphs.push_back(pinned_ends(*cluster));
      for (Graph& graph : graphs) {
        std::string name = graph.name() + "_on_" + cluster->name();
        auto problem =
            compile(std::make_shared<const Graph>(std::move(graph)), cluster, CostMode::kMeasured);
        filled.push_back({std::move(name), std::move(problem)});
      }
    }
    return filled;
  }();
  return cases;
}

const TinyCase& tiny_case(const std::string& name) {
  for (const TinyCase& tiny : tiny_cases()) {
    if (tiny.name == name) return tiny;
  }
  throw std::logic_error("there is no tiny case '" + name + "'");
}

}  // namespace emplace
