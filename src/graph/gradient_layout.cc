// Rules of operators that move elements without changing them, and of those that pick some.
#include <algorithm>

#include "base/error.h"

#include "graph/gradient_rules.h"

namespace emplace::gradient_rules {
namespace {

// The axis attribute, counted from the front.
std::size_t axis_of(const OpGradient& op, std::size_t rank, std::int64_t otherwise) {
  const std::int64_t axis = op.attributes().integer("axis", otherwise);
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) {
    fail_input("op '{}': axis: there is no axis {} of {}", op.name(), axis, rank);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

}  // namespace

void view(OpGradient& op) {
  if (op.wants(0)) op.give(0, op.reshape(*op.gradient(), op.input(0).shape, {}));
}

void transpose(OpGradient& op) {
  if (!op.wants(0)) return;
  const std::size_t rank = op.input(0).shape.size();
  const auto given = op.attributes().integers("perm");
  if (!given.empty() && given.size() != rank) {
    fail_input("op '{}': perm: has {} axes, expected {}", op.name(), given.size(), rank);
  }
  std::vector<std::int64_t> inverse(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t from =
        given.empty() ? static_cast<std::int64_t>(rank - 1 - i) : given[i];  // default: reversed
    if (from < 0 || from >= static_cast<std::int64_t>(rank)) {
      fail_input("op '{}': perm: there is no axis {} of {}", op.name(), from, rank);
    }
    inverse[static_cast<std::size_t>(from)] = static_cast<std::int64_t>(i);
  }
  op.give(0, op.add_one({.type = "Transpose",
                         .inputs = {*op.gradient()},
                         .outputs = {op.input(0)},
                         .attributes = {{"perm", inverse}}}));
}

void expand(OpGradient& op) {
  if (op.wants(0)) op.give(0, op.reduce_to(*op.gradient(), op.input(0).shape, "sum"));
}

// Every input's part of the gradient, as it lies there.
void concat(OpGradient& op) {
  const std::size_t axis = axis_of(op, op.output(0).shape.size(), 0);
  std::vector<TensorType> outputs;
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.input(i).shape.size() != op.output(0).shape.size()) op.misfit();
    outputs.push_back(op.input(i));
    sizes.push_back(op.input(i).shape[axis]);
    total += sizes.back();
  }
  if (total != op.output(0).shape[axis]) {
    // An input that occurs several times but is listed once: its parts are summed.
    joint(op);
    return;
  }
  const auto parts =
      op.add({.type = "Split",
              .inputs = {*op.gradient()},
              .outputs = std::move(outputs),
              .view = true,
              .attributes = {{"axis", static_cast<std::int64_t>(axis)}, {"split", sizes}}});
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.wants(i)) op.give(i, parts[i]);
  }
}

void split(OpGradient& op) {
  if (!op.wants(0)) return;
  const std::size_t axis = axis_of(op, op.input(0).shape.size(), 0);
  const std::vector<std::int64_t> arrived = op.arrived();
  GradientOp joined{.type = "Concat",
                    .inputs = op.gradients(),
                    .outputs = {op.input(0)},
                    .attributes = {{"axis", static_cast<std::int64_t>(axis)}}};
  if (arrived.size() < op.num_outputs()) {
    // Zeros where no gradient arrived.
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < op.num_outputs(); ++i) {
      if (op.output(i).shape.size() <= axis) op.misfit();
      sizes.push_back(op.output(i).shape[axis]);
    }
    joined.type = "SplitGrad";
    joined.attributes = op.attributes();
    joined.attributes.set("arrived", arrived);
    joined.attributes.set("split", sizes);
  }
  op.give(0, op.add_one(std::move(joined)));
}

// Where the largest were, as the op says itself, or by looking for them.
void max_pool(OpGradient& op) {
  if (!op.wants(0)) return;
  std::vector<TensorId> inputs{*op.gradient()};
  if (op.num_outputs() > 1) {
    inputs.push_back(op.kept_output(1));
  } else {
    inputs.push_back(op.kept_input(0));
    inputs.push_back(op.kept_output(0));
  }
  op.give(0, op.add_one({.type = fmt::format("{}Grad", op.type()),
                         .inputs = std::move(inputs),
                         .outputs = {op.input(0)},
                         .flops = count_elements(op.input(0).shape),
                         .attributes = op.attributes()}));
}

// Inputs: data, indices, updates.
void scatter(OpGradient& op) {
  const std::string_view reduction = op.attributes().text("reduction", "none");
  if (reduction != "none" && reduction != "add") {
    joint(op);
    return;
  }
  if (op.wants(0)) {
    if (reduction == "add") {
      op.give(0, *op.gradient());
    } else {
      op.give(0, op.add_one({.type = fmt::format("{}InputGrad", op.type()),
                             .inputs = {*op.gradient(), op.kept_input(1)},
                             .outputs = {op.input(0)},
                             .label = "0",
                             .attributes = op.attributes()}));
    }
  }
  if (!op.wants(2)) return;
  op.give(2, op.add_one({.type = fmt::format("{}UpdatesGrad", op.type()),
                         .inputs = {*op.gradient(), op.kept_input(1)},
                         .outputs = {op.input(2)},
                         .label = "2",
                         .attributes = op.attributes()}));
}

void depth_to_space(OpGradient& op) {
  if (!op.wants(0)) return;
  op.give(0, op.add_one({.type = "SpaceToDepth",
                         .inputs = {*op.gradient()},
                         .outputs = {op.input(0)},
                         .attributes = op.attributes()}));
}

void space_to_depth(OpGradient& op) {
  if (!op.wants(0)) return;
  op.give(0, op.add_one({.type = "DepthToSpace",
                         .inputs = {*op.gradient()},
                         .outputs = {op.input(0)},
                         .attributes = op.attributes()}));
}

}  // namespace emplace::gradient_rules
