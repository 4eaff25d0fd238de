#include "io/op_tables.h"

#include <fmt/format.h>

#include "graph/tensor_type.h"

#include "io/xml_text.h"

namespace emplace {
namespace {

// As RFC 4180 has it.
std::string csv_quoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string data_line(std::string_view key, std::string_view value) {
  return fmt::format("<data key=\"{}\">{}</data>", key, xml_escaped(value));
}

}  // namespace

std::string write_graphml(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n";
  for (const auto* key : {"name", "type", "module", "phase", "device"}) {
    text +=
        fmt::format("<key id=\"{0}\" for=\"node\" attr.name=\"{0}\" attr.type=\"string\"/>\n", key);
  }
  text +=
      "<key id=\"duration_ns\" for=\"node\" attr.name=\"duration_ns\" attr.type=\"long\"/>\n"
      "<key id=\"bytes\" for=\"edge\" attr.name=\"bytes\" attr.type=\"long\"/>\n"
      "<key id=\"crosses\" for=\"edge\" attr.name=\"crosses\" attr.type=\"boolean\"/>\n";
  text += fmt::format("<graph id=\"{}\" edgedefault=\"directed\">\n", xml_escaped(graph.name()));
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    text += fmt::format(
        "<node id=\"n{}\">{}{}{}{}{}{}</node>\n", op, data_line("name", graph.op_name(op)),
        data_line("type", graph.type(op)), data_line("module", graph.module(op)),
        data_line("phase", phase_name(graph.phase(op))),
        data_line("device", problem.cluster().device(placement[op]).name),
        data_line("duration_ns", fmt::format("{}", problem.duration(op, placement[op]))));
  }
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const OpId from = graph.producer(tensor);
    for (const OpId to : graph.consumers(tensor)) {
      text +=
          fmt::format("<edge source=\"n{}\" target=\"n{}\">{}{}</edge>\n", from, to,
                      data_line("bytes", fmt::format("{}", graph.bytes(tensor))),
                      data_line("crosses", placement[from] == placement[to] ? "false" : "true"));
    }
  }
  return text + "</graph>\n</graphml>\n";
}

std::string write_ops_csv(const Problem& problem, const Placement& placement,
                          const Timeline& timeline) {
  const Graph& graph = problem.graph();
  std::string text =
      "op,type,module,phase,device,start_ns,end_ns,duration_ns,flops,output_bytes,"
      "persistent_bytes,temp_bytes\n";
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    Bytes outputs = 0;
    for (const TensorId tensor : graph.outputs(op)) {
      outputs = saturating_add(outputs, graph.bytes(tensor));
    }
    const auto flops = graph.flops(op);
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_quoted(graph.op_name(op)),
        csv_quoted(graph.type(op)), csv_quoted(graph.module(op)), phase_name(graph.phase(op)),
        csv_quoted(problem.cluster().device(placement[op]).name), timeline.ops[op].start,
        timeline.ops[op].finish, problem.duration(op, placement[op]),
        flops ? fmt::format("{}", *flops) : std::string(), outputs, graph.persistent_bytes(op),
        graph.temp_bytes(op));
  }
  return text;
}

}  // namespace emplace
