#include "io/exporters.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "base/options.h"

#include "sim/simulator.h"

#include "bound/lower_bound.h"
#include "io/dot.h"
#include "io/graph_json_writer.h"
#include "io/onnx_writer.h"
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

constexpr std::array<Exporter, 5> kExporters{{
    {"trace", "timeline for Perfetto or chrome://tracing", true, export_trace},
    {"dot", "graph coloured by device, for Graphviz", true, export_dot},
    {"placement", "with what is predicted for this cluster", true, export_placement},
    {"graph", "the model as graph JSON", false, export_graph},
    {"onnx", "the model, a forward pass, as ONNX", false, export_onnx},
}};

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
