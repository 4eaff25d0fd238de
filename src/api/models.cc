// emplace/model.h, emplace/cluster.h, emplace/parse.h, emplace/problem.h over the rooms that do the
// work.
#include <cmath>
#include <utility>

#include <emplace/parse.h>
#include <emplace/problem.h>
#include <fmt/core.h>

#include "base/error.h"

#include "cluster/cluster.h"
#include "cluster/device_kinds.h"
#include "graph/graph_builder.h"

#include "cost/cost_source.h"
#include "cost/problem.h"

#include "io/cluster_yaml_writer.h"
#include "io/graph_json_writer.h"
#include "io/readers.h"
#include "report/assessment_report.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

// A caller's time. What is negative is refused by those who take it, with the op's name.
Decimal time_of(double microseconds, const std::string& device) {
  constexpr int kDigits = 6;         // picoseconds
  constexpr double kLongest = 1e12;  // eleven days
  if (!(std::abs(microseconds) <= kLongest)) {
    fail_input("time_us: {} for '{}'; expected microseconds, {:g} at most", microseconds, device,
               kLongest);
  }
  return Decimal::from_double(microseconds, kDigits);
}

TensorSpec spec_of(const TensorDescription& tensor) {
  if (tensor.bytes) return {.bytes = tensor.bytes};
  const auto dtype = parse_dtype(tensor.dtype);
  if (!dtype) fail_input("dtype '{}': expected a name such as float32", tensor.dtype);
  return {.shape = tensor.shape, .dtype = *dtype};
}

OpSpec spec_of(const OpDescription& op) {
  const auto phase = parse_phase(op.phase);
  if (!phase) fail_input("phase '{}': expected forward, backward or update", op.phase);
  OpSpec spec{.name = op.name,
              .type = op.type,
              .phase = *phase,
              .flops = op.flops,
              .persistent_bytes = op.persistent_bytes,
              .module = op.module,
              .colocate = op.colocate,
              .devices = op.devices};
  for (const auto& [device, microseconds] : op.time_us) {
    spec.time_us.emplace_back(device, time_of(microseconds, device));
  }
  return spec;
}

TensorId find_tensor(const std::vector<std::vector<TensorId>>& outputs,
                     const TensorReference& reference) {
  if (reference.op >= outputs.size()) {
    fail_input("inputs: reads from op {}, which does not come before it", reference.op);
  }
  if (reference.output >= outputs[reference.op].size()) {
    fail_input("inputs: reads output {} of op {}, which has {}", reference.output, reference.op,
               outputs[reference.op].size());
  }
  return outputs[reference.op][reference.output];
}

// A caller's function as a source.
class FunctionCosts final : public CostSource {
 public:
  FunctionCosts(std::string name, CostFunction function)
      : name_(std::move(name)), function_(std::move(function)) {}

  std::string_view name() const override { return name_; }
  std::optional<Decimal> time_us(const Query& query) const override {
    const auto time = function_(query.graph, query.op, query.device.name, query.device.kind);
    if (!time) return std::nullopt;
    try {
      return time_of(*time, query.device.name);
    } catch (const Error& error) {
      throw error.in(fmt::format("op '{}'", query.graph.op_name(query.op)));
    }
  }

 private:
  std::string name_;
  CostFunction function_;
};

}  // namespace

std::string version() {
  return EMPLACE_VERSION;
}

std::shared_ptr<const Graph> build_graph(const std::string& name,
                                         const std::vector<OpDescription>& ops) {
  GraphBuilder builder(name);
  std::vector<std::vector<TensorId>> outputs;
  for (const OpDescription& op : ops) {
    with_context("op '" + op.name + "'", [&] {
      OpSpec spec = spec_of(op);
      for (const TensorReference& input : op.inputs) {
        spec.inputs.push_back(find_tensor(outputs, input));
      }
      std::vector<TensorSpec> tensors;
      for (const TensorDescription& output : op.outputs) tensors.push_back(spec_of(output));
      outputs.push_back(builder.add(std::move(spec), tensors));
    });
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

GraphSummary summarize(const Graph& graph) {
  GraphSummary summary{.name = graph.name(),
                       .ops = graph.num_ops(),
                       .tensors = graph.num_tensors(),
                       .parameters = zoo::count_parameters(graph)};
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    summary.flops += graph.flops(op).value_or(0);
    summary.training = summary.training || graph.phase(op) == Phase::kBackward;
  }
  return summary;
}

OpView op_of(const Graph& graph, OpId op) {
  if (op >= graph.num_ops()) fail_option("op {}: the graph has {}", op, graph.num_ops());
  return {.name = std::string(graph.op_name(op)),
          .type = std::string(graph.type(op)),
          .phase = std::string(phase_name(graph.phase(op))),
          .module = std::string(graph.module(op)),
          .inputs = {graph.inputs(op).begin(), graph.inputs(op).end()},
          .outputs = {graph.outputs(op).begin(), graph.outputs(op).end()}};
}

TensorView tensor_of(const Graph& graph, TensorId tensor) {
  if (tensor >= graph.num_tensors()) {
    fail_option("tensor {}: the graph has {}", tensor, graph.num_tensors());
  }
  TensorView view;
  view.producer = graph.producer(tensor);
  view.consumers.assign(graph.consumers(tensor).begin(), graph.consumers(tensor).end());
  view.bytes = graph.bytes(tensor);
  if (graph.has_shape(tensor)) {
    view.shape.assign(graph.shape(tensor).begin(), graph.shape(tensor).end());
    view.dtype = dtype_name(graph.dtype(tensor));
  }
  return view;
}

std::string graph_json(const Graph& graph) {
  return write_graph_json(graph);
}

std::shared_ptr<const Graph> parse_graph(const std::string& json) {
  return std::make_shared<const Graph>(read_graph_json(json));
}

std::vector<ZooModel> zoo_models() {
  std::vector<ZooModel> models;
  const auto add = [&](const std::string& prefix, std::span<const zoo::ModelInfo> infos) {
    for (const zoo::ModelInfo& info : infos) {
      models.push_back(
          {prefix + info.name, info.summary, info.source, info.parameters, info.options});
    }
  };
  add("zoo:", zoo::models());
  add("family:", zoo::families());
  return models;
}

std::shared_ptr<const Cluster> build_cluster(const std::string& name,
                                             const std::vector<DeviceDescription>& devices,
                                             const std::vector<LinkRule>& links) {
  ClusterSpec spec{.name = name, .kinds = {}, .devices = {}, .links = links};
  for (const DeviceDescription& device : devices) {
    Device own{.name = device.name, .kind = device.kind};
    const DeviceKind* kind = find_device_kind(device.kind);
    own.memory = device.memory ? *device.memory : kind != nullptr ? kind->memory : 0;
    spec.devices.push_back(std::move(own));
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

std::string name_of(const Cluster& cluster) {
  return cluster.name();
}

std::vector<DeviceView> devices_of(const Cluster& cluster) {
  std::vector<DeviceView> devices;
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const Device& device = cluster.device(id);
    devices.push_back({device.name, device.kind, device.memory, cluster.is_cpu(id)});
  }
  return devices;
}

std::vector<std::string> channels_of(const Cluster& cluster) {
  std::vector<std::string> names;
  for (ChannelId id = 0; id < cluster.num_channels(); ++id)
    names.push_back(cluster.channel_name(id));
  return names;
}

std::string cluster_yaml(const Cluster& cluster) {
  return write_cluster_yaml(cluster.spec());
}

std::shared_ptr<const Cluster> parse_cluster(const std::string& yaml) {
  return std::make_shared<const Cluster>(read_cluster_yaml(yaml));
}

std::vector<std::string> device_kinds() {
  std::vector<std::string> names;
  for (const DeviceKind& kind : built_in_device_kinds()) names.push_back(kind.name);
  return names;
}

std::shared_ptr<const CostSource> costs_from(const std::string& name, CostFunction function) {
  return std::make_shared<FunctionCosts>(name, std::move(function));
}

const Graph& graph_of(const Problem& problem) {
  return problem.graph();
}

const Cluster& cluster_of(const Problem& problem) {
  return problem.cluster();
}

Nanoseconds duration_of(const Problem& problem, OpId op, DeviceId device) {
  if (op >= problem.num_ops()) fail_option("op {}: the graph has {}", op, problem.num_ops());
  if (device >= problem.num_devices()) {
    fail_option("device {}: the cluster has {}", device, problem.num_devices());
  }
  return problem.duration(op, device);
}

std::string describe(const Problem& problem) {
  return describe_problem(problem);
}

}  // namespace emplace
