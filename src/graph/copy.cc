#include "graph/copy.h"

#include "graph/tensor_type.h"

namespace emplace {

Bytes size_in_bytes(const Graph& graph, TensorId tensor) {
  return graph.has_shape(tensor) ? tensor_bytes(graph.shape(tensor), graph.dtype(tensor))
                                 : graph.bytes(tensor);
}

TensorSpec spec_of_tensor(const Graph& graph, TensorId tensor) {
  TensorSpec spec;
  if (graph.has_shape(tensor)) {
    spec.shape.assign(graph.shape(tensor).begin(), graph.shape(tensor).end());
    spec.dtype = graph.dtype(tensor);
  } else {
    spec.bytes = graph.bytes(tensor);
  }
  const Bytes size = size_in_bytes(graph, tensor);
  if (graph.bytes(tensor) != size) spec.sent_bytes = graph.bytes(tensor);
  if (graph.memory_bytes(tensor) != size) spec.memory_bytes = graph.memory_bytes(tensor);
  return spec;
}

OpSpec spec_of_op(const Graph& graph, OpId op) {
  OpSpec spec{.name = std::string(graph.op_name(op)),
              .type = std::string(graph.type(op)),
              .phase = graph.phase(op),
              .flops = graph.flops(op),
              .bytes_moved = graph.bytes_moved(op),
              .persistent_bytes = graph.persistent_bytes(op),
              .temp_bytes = graph.temp_bytes(op),
              .view = graph.is_view(op),
              .module = std::string(graph.module(op)),
              .colocate = std::string(graph.colocate(op)),
              .attributes = graph.attributes(op)};
  for (const MeasuredTime& time : graph.measured_times(op)) {
    spec.time_us.emplace_back(graph.strings().get(time.device), time.microseconds);
  }
  for (const StringId device : graph.allowed_devices(op)) {
    spec.devices.emplace_back(graph.strings().get(device));
  }
  return spec;
}

Graph changed_copy(const Graph& graph, const std::function<void(OpId, OpSpec&)>& change) {
  GraphBuilder builder(graph.name(), graph.source());
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    builder.add_tensor(spec_of_tensor(graph, tensor));
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    OpSpec spec = spec_of_op(graph, op);
    spec.inputs.assign(graph.inputs(op).begin(), graph.inputs(op).end());
    spec.outputs.assign(graph.outputs(op).begin(), graph.outputs(op).end());
    for (const OpId before : graph.after(op)) spec.after.emplace_back(graph.op_name(before));
    change(op, spec);
    builder.add_op(spec);
  }
  return std::move(builder).build();
}

}  // namespace emplace
