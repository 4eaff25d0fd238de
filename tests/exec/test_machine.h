// A machine of several devices on whatever cores there are, and ops of known length.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "graph/graph_builder.h"

#include "exec/clock.h"
#include "exec/machine.h"
#include "exec/program.h"

namespace emplace::exec {

struct TestLink {
  std::int64_t bandwidth = 1'000'000'000;
  Nanoseconds latency = 0;
  bool throttled = false;
};

// All devices share the first core that this process has: order and memory are tried, not speed.
inline std::shared_ptr<const Cluster> shared_core_cluster(int devices, TestLink link = {},
                                                          Bytes memory = kUnlimited) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  int core = 0;
  while (core < CPU_SETSIZE && !CPU_ISSET(static_cast<std::size_t>(core), &set)) ++core;
  ClusterSpec spec;
  spec.name = "test";
  for (int i = 0; i < devices; ++i) {
    Device device;
    device.name = fmt::format("cpu{}", i);
    device.kind = "cpu";
    device.memory = memory;
    device.runs_on = fmt::format("cores {}", core);
    spec.devices.push_back(device);
  }
  LinkRule rule;
  rule.bandwidth = link.bandwidth;
  rule.latency = link.latency;
  rule.channel = "out";
  rule.throttled = link.throttled;
  spec.links.push_back(rule);
  return std::make_shared<const Cluster>(std::move(spec));
}

// Ops last as long as their attribute says and make tensors of ones.
inline CompiledOp compile_waiting_op(const Graph& graph, OpId op, const OpTarget&) {
  std::vector<Integers> shapes;
  for (const TensorId tensor : graph.outputs(op)) {
    const auto shape = graph.shape(tensor);
    shapes.emplace_back(shape.begin(), shape.end());
  }
  const Nanoseconds length = graph.attributes(op).integer("length", 0);
  const bool view = graph.is_view(op);
  return {.run =
              [shapes, length, view](OpStep& step) {
                const Nanoseconds start = now();
                for (std::size_t i = 0; i < shapes.size(); ++i) {
                  step.outputs[i] = view ? step.inputs[0] : torch::ones(shapes[i]);
                }
                wait_until(start + length);
              },
          .native = true};
}

inline SourceValue sources_of_ones() {
  return [](const Graph& graph, OpId op, std::size_t output) {
    const auto shape = graph.shape(graph.outputs(op)[output]);
    return torch::ones(Integers(shape.begin(), shape.end()));
  };
}

}  // namespace emplace::exec
