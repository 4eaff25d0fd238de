#include "io/exporters.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "base/units.h"

#include "sim/simulator.h"

#include "bound/lower_bound.h"
#include "io/device_map.h"
#include "io/dot.h"
#include "io/graph_json_writer.h"
#include "io/layer_flags.h"
#include "io/onnx_devices.h"
#include "io/onnx_parts.h"
#include "io/onnx_source.h"
#include "io/onnx_writer.h"
#include "io/op_tables.h"
#include "io/parallel_degrees.h"
#include "io/pipeline_exports.h"
#include "io/sharding_json.h"
#include "io/tp_plan.h"
#include "io/trace_json.h"

namespace emplace {
namespace {

Timeline timeline_of(const ExportInput& input) {
  if (input.timeline) return input.timeline();
  return Simulator(input.problem).run(input.placed.placement, input.placed.schedule);
}

std::string export_trace(const ExportInput& input) {
  return write_trace_json(*input.problem, input.placed.placement, timeline_of(input));
}

std::string export_dot(const ExportInput& input) {
  return write_dot(*input.problem, input.placed.placement);
}

std::string export_placement(const ExportInput& input) {
  const Problem& problem = *input.problem;
  const Timeline timeline = timeline_of(input);
  PlacementFile file = input.placed;
  file.graph = problem.graph().name();
  file.cluster = problem.cluster().name();
  file.predicted = PlacementFile::Predicted{timeline.step, timeline.fits(),
                                            lower_bound(problem, timeline.fits()).step};
  return write_placement_json(problem, file);
}

std::string export_graph(const ExportInput& input) {
  return write_graph_json(input.graph);
}

std::string export_onnx(const ExportInput& input) {
  return write_onnx(input.graph);
}

std::vector<std::string> device_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
    names.push_back(cluster.device(device).name);
  }
  return names;
}

bool has_backward(const Graph& graph) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward) return true;
  }
  return false;
}

PlacedOnnx placed_onnx(const ExportInput& input) {
  if (has_backward(input.graph)) {
    input.say("ONNX holds a forward pass: backward and update ops are left out");
  }
  return {.source = onnx_source(input.graph, input.model, input.dims),
          .graph = input.graph.name(),
          .devices = device_names(input.problem->cluster()),
          .device_of = [&input](std::string_view name) {
            const auto op = input.graph.find_op(name);
            if (!op) fail_input("op '{}' is in the model's file, and not in what was placed", name);
            return input.placed.placement[*op];
          }};
}

void fill_onnx_parts(const ExportInput& input, const std::string& folder) {
  const OnnxPartsSummary summary = write_onnx_parts(placed_onnx(input), folder);
  input.say(fmt::format("{} parts; tensors that go from one to another: {} ({})", summary.parts,
                        summary.tensors, format_bytes(summary.bytes)));
  if (!summary.missing.empty()) {
    input.say(fmt::format("weights are not there to be copied, and must lie beside the parts: {}",
                          fmt::join(summary.missing, ", ")));
  }
}

// The stages of a pipeline: devices in the order in which the forward pass goes through them, -1
// for those that it does not use. Empty where it comes back to one.
std::vector<int> stages_by_device(const Graph& graph, const Placement& placement,
                                  std::size_t devices) {
  std::set<DeviceId> waiting;
  std::vector<std::set<DeviceId>> before(devices);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward || graph.is_source(op)) continue;
    waiting.insert(placement[op]);
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId from = graph.producer(tensor);
      if (!graph.is_source(from) && placement[from] != placement[op]) {
        before[placement[op]].insert(placement[from]);
      }
    }
  }
  std::vector<int> stages(devices, -1);
  for (int stage = 0; !waiting.empty(); ++stage) {
    const auto next = std::find_if(waiting.begin(), waiting.end(),
                                   [&](DeviceId device) { return before[device].empty(); });
    if (next == waiting.end()) return {};
    stages[*next] = stage;
    for (auto& others : before) others.erase(*next);
    waiting.erase(next);
  }
  return stages;
}

std::string export_onnx_devices(const ExportInput& input) {
  if (input.partition != nullptr) {
    if (has_backward(input.graph)) {
      input.say("ONNX holds a forward pass: backward and update ops are left out");
    }
    CutOnnx cut =
        write_onnx_devices(onnx_source(input.graph, input.model, input.dims), *input.partition);
    if (cut.nodes == 0) fail_input("the partition names no tensor of the model");
    if (cut.unknown > 0) {
      input.say(fmt::format("the partition says nothing of {} of {} nodes", cut.unknown,
                            cut.nodes + cut.unknown));
    }
    input.say(
        "how tensors are kept is said; partial sums and what is moved are not, and parts are "
        "of equal size");
    return std::move(cut.bytes);
  }
  const PlacedOnnx placed = placed_onnx(input);
  const std::vector<int> stages =
      stages_by_device(input.graph, input.placed.placement, placed.devices.size());
  if (stages.empty()) {
    input.say("tensors go to and fro between devices, so no pipeline stages are said");
  }
  const std::string& name = input.problem->cluster().name();
  return write_onnx_devices(placed, name.empty() ? "cluster" : name, stages);
}

ExportNote note_of(const ExportInput& input) {
  return [&input](const std::string& text) { input.say(text); };
}

template <auto Write>
std::string export_placed(const ExportInput& input) {
  return Write(*input.problem, input.placed.placement, note_of(input));
}

std::string export_schedule(const ExportInput& input) {
  return write_pipeline_schedule(*input.problem, input.placed.placement, input.micro_batches,
                                 note_of(input));
}

// Pipelines of placements, degrees of partitions.
template <auto Placed, auto Divided>
std::string export_either(const ExportInput& input) {
  if (input.as_saved != nullptr) return Divided(input.graph, *input.as_saved, note_of(input));
  return Placed(*input.problem, input.placed.placement, note_of(input));
}

std::string export_deepspeed(const ExportInput& input) {
  const int count = input.micro_batches;
  if (input.as_saved != nullptr) {
    return write_deepspeed_degrees(input.graph, *input.as_saved, count, note_of(input));
  }
  return write_deepspeed_config(*input.problem, input.placed.placement, count, note_of(input));
}

template <auto Write>
std::string export_cuts(const ExportInput& input) {
  return Write(input.graph, *input.partition, note_of(input));
}

std::string export_graphml(const ExportInput& input) {
  return write_graphml(*input.problem, input.placed.placement);
}

std::string export_csv(const ExportInput& input) {
  return write_ops_csv(*input.problem, input.placed.placement, timeline_of(input));
}

using Of = Exporter::Of;

constexpr Exporter kExporters[]{
    {"trace", "timeline for Perfetto or chrome://tracing", Of::kPlacement, export_trace},
    {"dot", "graph coloured by device, for Graphviz", Of::kPlacement, export_dot},
    {"placement", "with what is predicted for this cluster", Of::kPlacement, export_placement},
    {"onnx-parts", "a folder of ONNX files, one for each device segment, with a manifest",
     Of::kPlacement, nullptr, false, fill_onnx_parts, kPartsManifest},
    {"onnx-devices", "the model with ONNX's multi-device annotations", Of::kPlacementOrPartition,
     export_onnx_devices},
    {"device_map", "modules to devices, for Hugging Face", Of::kPlacement,
     export_placed<write_device_map>},
    {"torch-pipeline", "split points for torch.distributed.pipelining", Of::kPlacement,
     export_placed<write_torch_pipeline>},
    {"torch-schedule", "a pipeline's schedule for torch.distributed.pipelining, as CSV",
     Of::kPlacement, export_schedule, true},
    {"torchtitan", "configuration of torchtitan", Of::kPlacementOrDegrees,
     export_either<write_torchtitan_config, write_torchtitan_degrees>},
    {"deepspeed", "configuration of DeepSpeed", Of::kPlacementOrDegrees, export_deepspeed, true},
    {"llama.cpp", "flags of llama.cpp", Of::kPlacement, export_placed<write_llama_cpp_flags>},
    {"megatron", "flags of Megatron-LM", Of::kPlacementOrDegrees,
     export_either<write_megatron_flags, write_megatron_degrees>},
    {"tp_plan", "how linear layers are cut, for Hugging Face", Of::kPartition,
     export_cuts<write_tp_plan>},
    {"dtensor", "cuts of weights and inputs for PyTorch's DTensor", Of::kPartition,
     export_cuts<write_dtensor_plan>},
    {"jax", "cuts of weights and inputs as JAX PartitionSpecs", Of::kPartition,
     export_cuts<write_partition_specs>},
    {"graphml", "graph with devices, for viewers of graphs", Of::kPlacement, export_graphml},
    {"csv", "a row for each op", Of::kPlacement, export_csv},
    {"graph", "the model as graph JSON", Of::kModel, export_graph},
    {"onnx", "the model, a forward pass, as ONNX", Of::kModel, export_onnx},
};

}  // namespace

std::span<const Exporter> exporters() {
  return kExporters;
}

const Exporter& find_exporter(std::string_view name) {
  std::vector<std::string> known;
  for (const Exporter& exporter : kExporters) {
    if (exporter.name == name) return exporter;
    known.emplace_back(exporter.name);
  }
  fail_option("unknown format '{}'{}; expected one of: {}", name, suggestion(name, known),
              fmt::join(known, ", "));
}

}  // namespace emplace
