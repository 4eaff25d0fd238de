#include "io/dot.h"

#include <array>

#include <fmt/format.h>

namespace emplace {
namespace {

// Light enough for black text, and told apart by those who do not see colours well (Tol's light
// scheme); more devices than colours repeat them.
constexpr std::array<std::string_view, 9> kColors{"#77AADD", "#EE8866", "#EEDD88",
                                                  "#FFAABB", "#99DDFF", "#44BB99",
                                                  "#BBCC33", "#AAAA00", "#DDDDDD"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

bool is_shown(const Graph& graph, OpId op) {
  return !graph.is_view(op) && !graph.is_source(op);
}

// The op that really produced a tensor, looking through views.
OpId origin(const Graph& graph, TensorId tensor) {
  OpId op = graph.producer(tensor);
  while (graph.is_view(op)) op = graph.producer(graph.inputs(op)[0]);
  return op;
}

}  // namespace

std::string write_dot(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  const Cluster& cluster = problem.cluster();
  std::string text =
      fmt::format("digraph \"{}\" {{\n  rankdir=TB;\n  node [shape=box, style=filled];\n",
                  escaped(graph.name()));
  for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
    text += fmt::format("  \"device: {0}\" [label=\"{0}\", fillcolor=\"{1}\", shape=oval];\n",
                        escaped(cluster.device(device).name), kColors[device % kColors.size()]);
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!is_shown(graph, op)) continue;
    text += fmt::format("  n{} [label=\"{}\", tooltip=\"{}\", fillcolor=\"{}\"];\n", op,
                        escaped(graph.type(op)), escaped(graph.op_name(op)),
                        kColors[placement[op] % kColors.size()]);
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!is_shown(graph, op)) continue;
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId from = origin(graph, tensor);
      if (!is_shown(graph, from)) continue;
      const bool crosses = placement[from] != placement[op];
      text += fmt::format("  n{} -> n{}{};\n", from, op, crosses ? " [color=red, penwidth=2]" : "");
    }
    for (const OpId before : graph.after(op)) {
      if (is_shown(graph, before))
        text += fmt::format("  n{} -> n{} [style=dashed];\n", before, op);
    }
  }
  return text + "}\n";
}

}  // namespace emplace
