// Ops of known length, for machines of whatever cores there are.
#pragma once

#include "graph/graph_builder.h"

#include "exec/clock.h"
#include "exec/machine.h"
#include "exec/program.h"
#include "support/shared_core.h"

namespace emplace::exec {

// Ops last as long as their attribute says and make tensors of ones.
inline CompiledOp compile_waiting_op(const Graph& graph, OpId op, const OpTarget&) {
  std::vector<Integers> shapes;
  for (const TensorId tensor : graph.outputs(op)) {
    const auto shape = graph.shape(tensor);
    shapes.emplace_back(shape.begin(), shape.end());
  }
  const Nanoseconds length = graph.attributes(op).integer("length", 0);
  const bool view = graph.is_view(op);
  return {.run =
              [shapes, length, view](OpStep& step) {
                const Nanoseconds start = now();
                for (std::size_t i = 0; i < shapes.size(); ++i) {
                  step.outputs[i] = view ? step.inputs[0] : torch::ones(shapes[i]);
                }
                wait_until(start + length);
              },
          .native = true};
}

inline SourceValue sources_of_ones() {
  return [](const Graph& graph, OpId op, std::size_t output) {
    const auto shape = graph.shape(graph.outputs(op)[output]);
    return torch::ones(Integers(shape.begin(), shape.end()));
  };
}

}  // namespace emplace::exec
