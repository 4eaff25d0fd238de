// Rules that many operators share, and those of arithmetic, choices and losses.
//
// Broadcasting repeats an operand, so its gradient is first made in the shape of the output and
// then summed over the repeated dimensions (OpGradient::reduce_to). A graph may list an operand
// once that is used twice (x * x): rules look at how many inputs there are, and give such a tensor
// all of its gradient.
#include <algorithm>

#include "base/error.h"

#include "graph/gradient_rules.h"
#include "graph/op_costs.h"

namespace emplace::gradient_rules {
namespace {

enum class Repeated { kOnce, kAtEveryPosition };

// Gradients, then the inputs and outputs that the row keeps.
std::vector<TensorId> elementwise_operands(OpGradient& op, Repeated repeated) {
  std::vector<TensorId> result = op.gradients();
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (!positions::contain(op.row().inputs, i)) continue;
    if (repeated == Repeated::kAtEveryPosition || !op.repeats(i)) {
      result.push_back(op.kept_input(i));
    }
  }
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    if (positions::contain(op.row().outputs, i)) result.push_back(op.kept_output(i));
  }
  return result;
}

std::string grad_of(const OpGradient& op) {
  return fmt::format("{}Grad", op.type());
}

std::int64_t per_element(const OpGradient& op) {
  std::int64_t elements = count_elements(op.output(0).shape);
  if (op.num_inputs() > 0) elements = std::max(elements, count_elements(op.input(0).shape));
  return saturating_multiply(op.row().factor, elements);
}

void add_joint(OpGradient& op, std::int64_t flops) {
  std::vector<TensorType> outputs;
  std::vector<std::int64_t> wanted;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (!op.wants(i) || op.repeats(i)) continue;
    outputs.push_back(op.input(i));
    wanted.push_back(static_cast<std::int64_t>(i));
  }
  Attributes attributes = op.attributes();
  if (wanted.size() < op.num_inputs()) attributes.set("wanted", wanted);
  if (const auto arrived = op.arrived(); arrived != std::vector<std::int64_t>{0}) {
    attributes.set("arrived", arrived);
  }
  const auto gradients = op.add({.type = grad_of(op),
                                 .inputs = elementwise_operands(op, Repeated::kOnce),
                                 .outputs = std::move(outputs),
                                 .flops = flops,
                                 .attributes = std::move(attributes)});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    op.give(static_cast<std::size_t>(wanted[i]), gradients[i]);
  }
}

Attributes with_input(const OpGradient& op, std::size_t i) {
  Attributes attributes = op.attributes();
  attributes.set("input", static_cast<std::int64_t>(i));
  return attributes;
}

}  // namespace

// Numbers that say where (starts, ends, axes) may be one tensor by chance: each has its place.
void single(OpGradient& op) {
  if (!op.wants(0)) return;
  op.give(0, op.add_one({.type = grad_of(op),
                         .inputs = elementwise_operands(op, Repeated::kAtEveryPosition),
                         .outputs = {op.input(0)},
                         .flops = per_element(op),
                         .attributes = op.attributes()}));
}

void joint(OpGradient& op) {
  add_joint(op, per_element(op));
}

void joint_product(OpGradient& op) {
  add_joint(op, saturating_multiply(op.row().factor, op.forward_flops()) / 2);
}

void fused_attention(OpGradient& op) {
  if (op.input(0).shape.empty() || op.input(2).shape.empty()) op.misfit();
  const PairFlops pair = fused_attention_pair(op.input(0).shape.back(), op.input(2).shape.back());
  // As many pairs as the forward op has.
  add_joint(op, saturating_multiply(op.forward_flops() / pair.forward, pair.backward));
}

void each_operand(OpGradient& op) {
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (!op.wants(i) || op.repeats(i)) continue;
    const std::string label = std::to_string(i);
    const TensorId full =
        op.add_one({.type = grad_of(op),
                    .inputs = elementwise_operands(op, Repeated::kOnce),
                    .outputs = {tensor_type(op.output(0).shape, op.input(i).dtype)},
                    .flops = per_element(op),
                    .label = label,
                    .attributes = with_input(op, i)});
    op.give(i, op.reduce_to(full, op.input(i).shape, label + "_sum"));
  }
}

void same(OpGradient& op) {
  if (!op.wants(0)) return;
  std::vector<TensorId> inputs{*op.gradient()};
  for (std::size_t i = 1; i < op.num_inputs(); ++i) inputs.push_back(op.kept_input(i));
  op.give(0, op.add_one({.type = std::string(op.type()),
                         .inputs = std::move(inputs),
                         .outputs = {op.input(0)},
                         .flops = per_element(op),
                         .attributes = op.attributes()}));
}

// Also of a sum of several: everyone gets the whole gradient.
void add(OpGradient& op) {
  const std::size_t operands = std::max<std::size_t>(op.num_inputs(), op.type() == "Add" ? 2 : 1);
  for (std::size_t i = 0; i < operands; ++i) {
    const std::size_t at = std::min(i, op.num_inputs() - 1);  // x + x may list x once
    if (!op.wants(at)) continue;
    op.give(at, op.reduce_to(*op.gradient(), op.input(at).shape, fmt::format("{}_sum", i)));
  }
}

void subtract(OpGradient& op) {
  if (op.num_inputs() < 2) return;  // x - x
  if (op.wants(0)) op.give(0, op.reduce_to(*op.gradient(), op.input(0).shape, "0_sum"));
  if (!op.wants(1)) return;
  const TensorId sum = op.reduce_to(*op.gradient(), op.input(1).shape, "1_sum");
  op.give(1, op.add_one({.type = "Neg",
                         .inputs = {sum},
                         .outputs = {op.input(1)},
                         .flops = count_elements(op.input(1).shape),
                         .label = "1"}));
}

void multiply(OpGradient& op) {
  const std::int64_t elements = count_elements(op.output(0).shape);
  const bool square = op.num_inputs() < 2 || op.repeats(1);
  if (square) {
    if (!op.wants(0)) return;
    op.give(0, op.add_one({.type = "SquareGrad",
                           .inputs = {*op.gradient(), op.kept_input(0)},
                           .outputs = {op.input(0)},
                           .flops = saturating_multiply(2, elements)}));
    return;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (!op.wants(i)) continue;
    const std::string label = std::to_string(i);
    const TensorId full =
        op.add_one({.type = "Mul",
                    .inputs = {*op.gradient(), op.kept_input(1 - i)},
                    .outputs = {tensor_type(op.output(0).shape, op.input(i).dtype)},
                    .flops = elements,
                    .label = label});
    op.give(i, op.reduce_to(full, op.input(i).shape, label + "_sum"));
  }
}

void divide(OpGradient& op) {
  if (op.num_inputs() < 2) return;  // x / x
  const std::int64_t elements = count_elements(op.output(0).shape);
  if (op.wants(0)) {
    const TensorId full = op.add_one({.type = "Div",
                                      .inputs = {*op.gradient(), op.kept_input(1)},
                                      .outputs = {op.output(0)},
                                      .flops = elements,
                                      .label = "0"});
    op.give(0, op.reduce_to(full, op.input(0).shape, "0_sum"));
  }
  if (!op.wants(1)) return;
  const TensorId full = op.add_one({.type = "DivGrad",
                                    .inputs = {*op.gradient(), op.kept_input(0), op.kept_input(1)},
                                    .outputs = {op.output(0)},
                                    .flops = saturating_multiply(4, elements),
                                    .label = "1",
                                    .attributes = with_input(op, 1)});
  op.give(1, op.reduce_to(full, op.input(1).shape, "1_sum"));
}

void mean(OpGradient& op) {
  const auto operands = static_cast<std::int64_t>(op.num_inputs());
  const TensorId part = op.add_one({.type = "MeanGrad",
                                    .inputs = {*op.gradient()},
                                    .outputs = {op.output(0)},
                                    .flops = count_elements(op.output(0).shape),
                                    .attributes = {{"count", operands}}});
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.wants(i)) op.give(i, op.reduce_to(part, op.input(i).shape, fmt::format("{}_sum", i)));
  }
}

void where(OpGradient& op) {
  if (op.num_inputs() < 3) {  // both choices are one tensor
    if (op.wants(1)) op.give(1, op.reduce_to(*op.gradient(), op.input(1).shape, "sum"));
    return;
  }
  for (std::size_t i = 1; i < 3; ++i) {
    if (!op.wants(i)) continue;
    const std::string label = std::to_string(i);
    const TensorId full = op.add_one({.type = "WhereGrad",
                                      .inputs = {*op.gradient(), op.kept_input(0)},
                                      .outputs = {op.output(0)},
                                      .flops = 0,
                                      .label = label,
                                      .attributes = with_input(op, i)});
    op.give(i, op.reduce_to(full, op.input(i).shape, label + "_sum"));
  }
}

void identity(OpGradient& op) {
  if (op.wants(0)) op.give(0, *op.gradient());
}

void cast(OpGradient& op) {
  if (!op.wants(0)) return;
  if (op.input(0).dtype == op.output(0).dtype) {
    op.give(0, *op.gradient());
    return;
  }
  // Without the attribute of the forward op: the output's element type says to what.
  op.give(0, op.add_one({.type = "Cast", .inputs = {*op.gradient()}, .outputs = {op.input(0)}}));
}

// Without a mask it did nothing, as in inference.
void dropout(OpGradient& op) {
  if (!op.wants(0)) return;
  if (op.num_outputs() < 2) {
    op.give(0, *op.gradient());
    return;
  }
  op.give(0, op.add_one({.type = "DropoutGrad",
                         .inputs = {*op.gradient(), op.kept_output(1)},
                         .outputs = {op.input(0)},
                         .flops = count_elements(op.input(0).shape),
                         .attributes = op.attributes()}));
}

// Softmax and cross entropy in one: the logarithms of the probabilities are enough where the op
// hands them out, else they are made again from the scores. Their gradient lies in memory between
// the two halves.
void loss(OpGradient& op) {
  if (!op.wants(0)) return;
  const bool has_probabilities = op.num_outputs() > 1;
  std::vector<TensorId> inputs{*op.gradient()};
  for (std::size_t i = has_probabilities ? 1 : 0; i < op.num_inputs(); ++i) {
    inputs.push_back(op.kept_input(i));
  }
  if (has_probabilities) inputs.push_back(op.kept_output(1));
  op.give(0, op.add_one({.type = grad_of(op),
                         .inputs = std::move(inputs),
                         .outputs = {op.input(0)},
                         .flops = per_element(op),
                         .attributes = op.attributes(),
                         .temp_bytes = op.input(0).bytes}));
}

}  // namespace emplace::gradient_rules
