#include "io/device_map.h"

#include <algorithm>
#include <set>

#include "base/error.h"

#include "io/json_layout.h"
#include "io/module_devices.h"

namespace emplace {
namespace {

using MapJson = nlohmann::ordered_json;

// "'a'", "'a' and 3 others".
std::string some_ops(const Graph& graph, const std::vector<OpId>& ops) {
  std::string text = fmt::format("'{}'", graph.op_name(ops.front()));
  if (ops.size() == 2) text += " and another";
  if (ops.size() > 2) text += fmt::format(" and {} others", ops.size() - 1);
  return text;
}

void note_moved(const Graph& graph, const ModuleDevices& modules, const ExportNote& note) {
  if (!modules.made_one.empty()) {
    note(
        fmt::format("read on several devices, and so taken for equal weights that the exporter "
                    "made one: {}",
                    some_ops(graph, modules.made_one)));
  }
  if (!modules.moved.empty()) {
    note(
        fmt::format("run where their inputs are, not where they were placed, as ops of divided "
                    "modules do: {}",
                    some_ops(graph, modules.moved)));
  }
}

void note_training(const Graph& graph, const ExportNote& note) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) == Phase::kForward) continue;
    note(
        "autograd runs backward ops where their forward ops are, and updates where weights are, "
        "wherever they were placed");
    return;
  }
}

// The entries in runs of one device each.
struct PipelineStage {
  DeviceId device = 0;
  std::vector<std::string> modules = {};
};

// Which stage an op of the forward pass is in, by the entries around it.
std::vector<PipelineStage> stages_of(const ModuleDevices& modules) {
  std::vector<PipelineStage> stages;
  for (const ModuleDevices::Entry& entry : modules.entries) {
    if (stages.empty() || stages.back().device != entry.device) {
      stages.push_back({.device = entry.device, .modules = {}});
    }
    stages.back().modules.push_back(entry.path);
  }
  return stages;
}

}  // namespace

std::string write_device_map(const Problem& problem, const Placement& placement,
                             const ExportNote& note) {
  const ModuleDevices modules = module_devices(problem, placement);
  const Cluster& cluster = problem.cluster();
  MapJson map = MapJson::object();
  std::set<DeviceId> cpus;
  for (const ModuleDevices::Entry& entry : modules.entries) {
    const int number = accelerator_number(cluster, entry.device);
    if (number < 0) cpus.insert(entry.device);
    map[entry.path] = number < 0 ? MapJson("cpu") : MapJson(number);
  }
  if (cpus.size() > 1) {
    note(fmt::format("a device_map knows one CPU, and {} are used", cpus.size()));
  }
  note_moved(problem.graph(), modules, note);
  note_training(problem.graph(), note);
  return laid_out(map, 1);
}

std::string write_torch_pipeline(const Problem& problem, const Placement& placement,
                                 const ExportNote& note) {
  const Graph& graph = problem.graph();
  const ModuleDevices modules = module_devices(problem, placement);
  const std::vector<PipelineStage> stages = stages_of(modules);
  if (stages.size() < 2) fail_input("all modules are on one device: there is nothing to split");

  // Ops between the entries' first ops are of the stage before; data may only go on.
  std::vector<OpId> begins;
  std::size_t entry = 0;
  for (const PipelineStage& stage : stages) {
    begins.push_back(modules.entries[entry].first);
    entry += stage.modules.size();
  }
  const auto stage_of = [&](OpId op) {
    const auto after = std::upper_bound(begins.begin() + 1, begins.end(), op);
    return static_cast<std::size_t>(after - begins.begin()) - 1;
  };
  std::size_t skipping = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward || graph.is_source(op)) continue;
    const std::size_t stage = stage_of(op);
    if (modules.of_op[op] != stages[stage].device && !graph.is_view(op)) {
      fail_input(
          "op '{}' is on {} and comes between the modules of stage {}, which are on {}: the "
          "placement is no pipeline in the order of the forward pass",
          graph.op_name(op), problem.cluster().device(modules.of_op[op]).name, stage,
          problem.cluster().device(stages[stage].device).name);
    }
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId from = graph.producer(tensor);
      if (!graph.is_source(from) && stage_of(from) + 1 < stage) ++skipping;
    }
  }
  MapJson json;
  json["format"] = "emplace.torch_pipeline/1";
  json["split_spec"] = MapJson::object();
  json["stages"] = MapJson::array();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 0) json["split_spec"][stages[i].modules.front()] = "BEGINNING";
    json["stages"].push_back({{"rank", accelerator_number(problem.cluster(), stages[i].device)},
                              {"device", problem.cluster().device(stages[i].device).name},
                              {"modules", stages[i].modules}});
  }
  if (skipping > 0) {
    note(fmt::format("{} tensors pass over a stage; the stages between hand them on", skipping));
  }
  note_moved(graph, modules, note);
  note_training(graph, note);
  return laid_out(json, 2);
}

}  // namespace emplace
