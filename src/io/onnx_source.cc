#include "io/onnx_source.h"

#include <filesystem>

#include "base/error.h"

#include "graph/copy.h"

#include "io/file.h"
#include "io/model_formats.h"
#include "io/onnx_writer.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

// Its forward ops, which read nothing of the other phases.
Graph forward_pass(const Graph& graph) {
  GraphBuilder builder(graph.name(), graph.source());
  std::vector<TensorId> renumbered(graph.num_tensors());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward) continue;
    OpSpec spec = spec_of_op(graph, op);
    for (const TensorId tensor : graph.inputs(op)) {
      if (graph.phase(graph.producer(tensor)) != Phase::kForward) {
        fail_input("op '{}': is of the forward phase and reads what op '{}' of the {} phase writes",
                   graph.op_name(op), graph.op_name(graph.producer(tensor)),
                   phase_name(graph.phase(graph.producer(tensor))));
      }
      spec.inputs.push_back(renumbered[tensor]);
    }
    for (const TensorId tensor : graph.outputs(op)) {
      renumbered[tensor] = builder.add_tensor(spec_of_tensor(graph, tensor));
      spec.outputs.push_back(renumbered[tensor]);
    }
    builder.add_op(spec);
  }
  return std::move(builder).build();
}

}  // namespace

OnnxSource onnx_source(const Graph& graph, const std::string& model,
                       const std::map<std::string, std::int64_t, std::less<>>& dims) {
  if (!model.empty() && !zoo::is_zoo_name(model) && model != "-") {
    std::string bytes = read_file(model);
    if (recognise_model(bytes).name == "ONNX") {
      OnnxSource source{.bytes = std::move(bytes),
                        .folder = std::filesystem::path(model).parent_path().string()};
      source.options.dims = dims;
      return source;
    }
  }
  return {.bytes = write_onnx(forward_pass(graph))};
}

}  // namespace emplace
