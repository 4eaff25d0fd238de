#include "graph/fan_in.h"

#include <algorithm>
#include <string_view>

#include "graph/tensor_type.h"

namespace emplace {
namespace {

bool only_shows(const Graph& graph, OpId op) {
  return graph.is_view(op) || graph.type(op).starts_with("Part") || graph.type(op) == "Cast";
}

}  // namespace

WeightReader first_reader(const Graph& graph, TensorId tensor) {
  for (const OpId op : graph.consumers(tensor)) {
    const auto inputs = graph.inputs(op);
    if (only_shows(graph, op)) {
      const WeightReader found = first_reader(graph, graph.outputs(op)[0]);
      if (found.op != kNoOp) return found;
      continue;
    }
    const auto at = std::find(inputs.begin(), inputs.end(), tensor) - inputs.begin();
    return {op, static_cast<std::size_t>(at)};
  }
  return {};
}

std::int64_t fan_in(const Graph& graph, const WeightReader& reader,
                    std::span<const std::int64_t> shape) {
  const std::size_t rank = shape.size();
  const std::int64_t all = count_elements(shape);
  const std::string_view type = reader.op == kNoOp ? "" : graph.type(reader.op);
  if (type.starts_with("Gather")) return shape.back();
  if (type.ends_with("MatMul") || type == "Gemm") {
    const bool left = reader.input == 0;
    const char* name = left ? "transA" : "transB";
    const bool transposed = graph.attributes(reader.op).integer(name, 0) != 0;
    return left == transposed ? shape[rank - 2] : shape[rank - 1];
  }
  return shape[0] == 0 ? all : all / shape[0];
}

}  // namespace emplace
