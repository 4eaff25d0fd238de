#include "run/model_summary.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"

#include "graph/modules.h"
#include "graph/tensor_type.h"

#include "sim/simulator.h"

#include "io/file.h"
#include "io/model_formats.h"
#include "io/onnx_inputs.h"
#include "run/batch.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

// Everything on one device; which one hardly matters for the peak.
constexpr const char* kRoomyDevice = "1xh200";

// What a view is a view of.
TensorId viewed(const Graph& graph, TensorId tensor) {
  while (graph.is_view(graph.producer(tensor)) && !graph.inputs(graph.producer(tensor)).empty()) {
    tensor = graph.inputs(graph.producer(tensor))[0];
  }
  return tensor;
}

Bytes kept_for_backward(const Graph& graph) {
  std::vector<bool> kept(graph.num_tensors(), false);
  Bytes bytes = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) == Phase::kForward || graph.is_view(op)) continue;
    for (const TensorId input : graph.inputs(op)) {
      const TensorId tensor = viewed(graph, input);
      const OpId producer = graph.producer(tensor);
      if (kept[tensor] || graph.is_source(producer) || graph.phase(producer) != Phase::kForward) {
        continue;
      }
      kept[tensor] = true;
      bytes += graph.memory_bytes(tensor);
    }
  }
  return bytes;
}

std::optional<Bytes> peak_on_one_device(const std::shared_ptr<const Graph>& graph) {
  try {
    const Simulator simulator(
        compile(graph, read_cluster(kRoomyDevice), CompileOptions{.cost = CostMode::kAuto}));
    Bytes peak = 0;
    const auto workspace = simulator.make_workspace();
    simulator.evaluate(Placement(graph->num_ops(), 0), ReadyOrder(), *workspace,
                       std::span(&peak, 1));
    return peak;
  } catch (const Error&) {
    return std::nullopt;  // ops of which neither times nor shapes are known
  }
}

class ModuleBuilder {
 public:
  ModuleSummary build(const Graph& graph) {
    const Modules modules = infer_modules(graph);
    for (std::uint32_t i = 0; i < modules.size(); ++i) add_path(modules.names[i]);
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      std::int64_t parameters = 0;
      if (graph.role(op) == OpRole::kParameter) {
        for (const TensorId tensor : graph.outputs(op)) {
          parameters += count_elements(graph.shape(tensor));
        }
      }
      const auto flops = static_cast<double>(graph.flops(op).value_or(0));
      for (std::size_t at = index_.at(modules.names[modules.of_op[op]]);; at = nodes_[at].parent) {
        nodes_[at].summary.ops += 1;
        nodes_[at].summary.parameters += parameters;
        nodes_[at].summary.flops += flops;
        if (at == 0) break;
      }
    }
    return collect(0);
  }

 private:
  struct Node {
    ModuleSummary summary;
    std::size_t parent = 0;
    std::vector<std::size_t> inner = {};
  };

  void add_path(const std::string& name) {
    std::size_t at = 0;
    for (std::size_t dot = name.find('.'); !name.empty(); dot = name.find('.', dot + 1)) {
      const std::string prefix = name.substr(0, dot);
      const auto [found, added] = index_.try_emplace(prefix, nodes_.size());
      if (added) {
        nodes_.push_back({.summary = {.name = prefix}, .parent = at});
        nodes_[at].inner.push_back(found->second);
      }
      at = found->second;
      if (dot == std::string::npos) break;
    }
  }

  ModuleSummary collect(std::size_t at) {
    ModuleSummary summary = std::move(nodes_[at].summary);
    for (const std::size_t inner : nodes_[at].inner) summary.inner.push_back(collect(inner));
    return summary;
  }

  std::vector<Node> nodes_{Node{}};
  std::unordered_map<std::string, std::size_t> index_{{"", 0}};
};

void note_dims(const std::vector<OnnxInput>& inputs, std::vector<SymbolicDim>& dims) {
  for (const OnnxInput& input : inputs) {
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
      const std::string& symbol = input.shape[axis].symbol;
      if (symbol.empty()) continue;
      auto dim = std::find_if(dims.begin(), dims.end(),
                              [&](const SymbolicDim& known) { return known.name == symbol; });
      if (dim == dims.end()) dim = dims.insert(dims.end(), {.name = symbol, .where = {}});
      dim->where.push_back(fmt::format("axis {} of {}", axis, input.name));
    }
  }
}

void note_unknown(const Graph& graph, ModelSummary& summary) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op) || graph.is_view(op) || graph.flops(op)) continue;
    ++summary.ops_without_flops[std::string(graph.type(op))];
  }
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    if (!graph.has_shape(tensor)) {
      ++summary.tensors_without_shape;
    } else {
      summary.dtypes[std::string(dtype_name(graph.dtype(tensor)))] += graph.bytes(tensor);
    }
  }
}

}  // namespace

ModelFigures figures_of(const std::shared_ptr<const Graph>& graph) {
  ModelFigures figures{.ops = graph->num_ops(),
                       .tensors = graph->num_tensors(),
                       .parameters = zoo::count_parameters(*graph)};
  for (OpId op = 0; op < graph->num_ops(); ++op) {
    const auto phase = static_cast<std::size_t>(graph->phase(op));
    figures.flops[phase] += static_cast<double>(graph->flops(op).value_or(0));
    figures.training = figures.training || graph->phase(op) == Phase::kBackward;
    figures.sources += graph->is_source(op) ? 1 : 0;
    figures.views += graph->is_view(op) ? 1 : 0;
    figures.state_bytes += graph->persistent_bytes(op);
    for (const TensorId tensor : graph->outputs(op)) {
      if (graph->role(op) == OpRole::kParameter) {
        figures.parameter_bytes += graph->memory_bytes(tensor);
      } else if (graph->role(op) == OpRole::kBuffer) {
        figures.state_bytes += graph->memory_bytes(tensor);
      }
    }
  }
  figures.activation_bytes = kept_for_backward(*graph);
  figures.peak_bytes = peak_on_one_device(graph);
  return figures;
}

ModuleSummary modules_of(const Graph& graph) {
  return ModuleBuilder().build(graph);
}

std::vector<SymbolicDim> symbolic_dims(const ProblemRequest& request) {
  if (zoo::is_zoo_name(request.model)) return {};
  const std::string content = read_file(request.model);
  std::vector<SymbolicDim> dims;
  with_context(request.model, [&] {
    if (recognise_model(content).name == "ONNX") note_dims(read_onnx_inputs(content), dims);
  });
  for (SymbolicDim& dim : dims) {
    const auto given = request.dims.find(dim.name);
    if (given == request.dims.end()) continue;
    dim.value = given->second;
    dim.given = true;
  }
  return dims;
}

ModelSummary summarize_model(const ProblemRequest& request) {
  ProblemRequest complete = request.batch ? with_batch(request) : request;
  ModelSummary summary;
  summary.dims = symbolic_dims(complete);
  for (const SymbolicDim& dim : summary.dims) complete.dims[dim.name] = dim.value;
  const auto graph = load_model(complete).graph;
  summary.name = graph->name();
  summary.source = graph->source();
  summary.figures = figures_of(graph);
  summary.work = work_of(complete, *graph);
  summary.modules = modules_of(*graph);
  note_unknown(*graph, summary);
  return summary;
}

}  // namespace emplace
