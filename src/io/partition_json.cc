// emplace.partition/1 out: how every tensor is kept and every op is divided, level by level.
#include "io/partition_json.h"

#include <fmt/format.h>

#include "io/json_quote.h"

namespace emplace {
namespace {

// By level: the dimension's or variable's name, or null where all groups have the same.
template <class Name>
std::string list_of(const Cuts& cuts, const Name& name) {
  std::string text = "[";
  for (const std::int8_t cut : cuts) {
    if (text.size() > 1) text += ", ";
    text += cut == kUncut ? "null" : name(static_cast<std::size_t>(cut));
  }
  return text + "]";
}

}  // namespace

std::string write_partition_json(const Graph& graph, const Descriptions& descriptions,
                                 const Plan& plan, const PartitionFile& file) {
  std::string text = fmt::format(
      "{{\"format\": \"emplace.partition/1\", \"graph\": {}, \"cluster\": {}, \"method\": {},\n",
      json_quoted(graph.name()), json_quoted(file.cluster), json_quoted(plan.method));
  text +=
      fmt::format(" \"factors\": [{}], \"devices\": [", fmt::join(plan.workers.factors(), ", "));
  for (std::size_t i = 0; i < file.devices.size(); ++i) {
    text += (i == 0 ? "" : ", ") + json_quoted(file.devices[i]);
  }
  text += fmt::format(
      "],\n \"predicted\": {{\"step_ns\": {}, \"fits\": {}, \"transfer_bytes\": {}}},\n "
      "\"tensors\": "
      "{{",
      file.step, file.fits, file.moved);
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const OpId producer = graph.producer(tensor);
    const auto outputs = graph.outputs(producer);
    std::string name(graph.op_name(producer));
    for (std::size_t i = 0; i < outputs.size() && outputs.size() > 1; ++i) {
      if (outputs[i] == tensor) name += fmt::format(":{}", i);
    }
    text +=
        fmt::format("{}\n  {}: {{\"shape\": [{}], \"split\": {}{}}}", tensor == 0 ? "" : ",",
                    json_quoted(name), fmt::join(graph.shape(tensor), ", "),
                    list_of(plan.tensors[tensor], [](std::size_t d) { return std::to_string(d); }),
                    plan.holds(tensor) ? ", \"held\": true" : "");
  }
  text += "},\n \"ops\": {";
  bool first = true;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op)) continue;
    const tdl::Description* description = descriptions[op];
    text += fmt::format(
        "{}\n  {}: {{\"type\": {}, \"strategy\": {}}}", first ? "" : ",",
        json_quoted(graph.op_name(op)), json_quoted(graph.type(op)),
        list_of(plan.ops[op], [&](std::size_t v) {
          const bool partial = description->is_reduction(static_cast<tdl::VariableId>(v));
          return json_quoted((partial ? "sum " : "") + description->variables[v].name);
        }));
    first = false;
  }
  return text + "}}\n";
}

}  // namespace emplace
