// The graphs of a case: the op alone, and a step that trains what it reads.
#include <fmt/format.h>

#include "graph/gradients.h"
#include "graph/training.h"

#include "exec/operator_cases.h"

namespace emplace::exec {
namespace {

// The op with its operands; returns its outputs.
std::vector<TensorId> add_case(GraphBuilder& builder, const Case& model) {
  OpSpec op{.name = "op", .type = model.type, .attributes = model.attributes};
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const Operand& operand = model.inputs[i];
    op.inputs.push_back(builder.add(
        {.name = fmt::format("p{}", i), .type = operand.source, .attributes = operand.attributes},
        {operand.tensor})[0]);
  }
  op.inputs.insert(op.inputs.begin(), model.repeats, op.inputs[0]);
  return builder.add(op, model.outputs);
}

}  // namespace

Graph forward_of(const Case& model) {
  GraphBuilder builder(model.type);
  add_case(builder, model);
  return std::move(builder).build();
}

Graph step_of(const Case& model) {
  GraphBuilder builder(model.type);
  const auto outputs = add_case(builder, model);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorSpec& output = model.outputs[i];
    if (output.dtype != DType::kFloat32) continue;
    if (!positions::contain(find_gradient_row(model.type)->passes, i)) continue;
    // Along a dimension more: a single number would be the only thing that is differentiated.
    TensorSpec weight = output;
    weight.shape.insert(weight.shape.begin(), 2);
    const TensorId by =
        builder.add({.name = fmt::format("weights{}", i), .type = "input"}, {weight})[0];
    builder.add({.name = fmt::format("y{}", i), .type = "Mul", .inputs = {outputs[i], by}},
                {weight});
  }
  return training_step(std::move(builder).build());
}

}  // namespace emplace::exec
