#include "io/device_map.h"

#include <set>

#include "io/json_layout.h"

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

}  // namespace

void note_what_moves(const Graph& graph, const ModuleDevices& modules, const ExportNote& note) {
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
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) == Phase::kForward) continue;
    note(
        "autograd runs backward ops where their forward ops are, and updates where weights are, "
        "wherever they were placed");
    return;
  }
}

std::string write_device_map(const Problem& problem, const Placement& placement,
                             const ExportNote& note) {
  const ModuleDevices modules = module_devices(problem, placement, SharedWeights::kBrought);
  const Cluster& cluster = problem.cluster();
  MapJson map = MapJson::object();
  bool gpus = false;
  std::set<DeviceId> cpus;
  for (const ModuleDevices::Entry& entry : modules.entries) {
    const int number = accelerator_number(cluster, entry.device);
    if (number < 0) cpus.insert(entry.device);
    gpus |= number >= 0;
    map[entry.path] = number < 0 ? MapJson("cpu") : MapJson(number);
  }
  if (gpus && !cpus.empty()) {
    note(
        "accelerate does not compute on a CPU beside GPUs: it keeps weights there, and brings them "
        "to a GPU whenever they are used");
  }
  if (cpus.size() > 1) {
    note(fmt::format("a device_map knows one CPU, and {} are used", cpus.size()));
  }
  note_what_moves(problem.graph(), modules, note);
  return laid_out(map, 1);
}

}  // namespace emplace
