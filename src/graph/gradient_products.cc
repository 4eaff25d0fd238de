// Rules of matrix products, convolutions and recurrent layers.
//
// For Y = A B, dA = dY B' and dB = A' dY, and accordingly where A or B are transposed; transA and
// transB say so, and no transpose is ever copied. Batch dimensions that were broadcast are summed
// away afterwards, and vectors are matrices of one row or column in between. Each gradient costs
// the FLOPs of the forward product without its bias.
#include <algorithm>

#include "base/error.h"

#include "graph/gradient_rules.h"

namespace emplace::gradient_rules {
namespace {

struct Factor {
  TensorId tensor;
  bool transposed;
};

Attributes transposition(const OpGradient& op, const Factor& a, const Factor& b) {
  Attributes attributes;
  if (a.transposed) attributes.set("transA", std::int64_t{1});
  if (b.transposed) attributes.set("transB", std::int64_t{1});
  const double alpha = op.attributes().real("alpha", 1);
  if (alpha != 1) attributes.set("alpha", alpha);
  return attributes;
}

Shape with_rank_two(const Shape& shape, bool column) {
  if (shape.size() >= 2) return shape;
  return column ? Shape{shape[0], 1} : Shape{1, shape[0]};
}

// The product of two operands as the gradient of input i, which may have been broadcast over the
// leading dimensions. A vector on the right is a column until then.
void give_product(OpGradient& op, std::size_t i, const std::string& label, const Factor& a,
                  const Factor& b, Shape shape) {
  const TensorId product =
      op.add_one({.type = "MatMul",
                  .inputs = {a.tensor, b.tensor},
                  .outputs = {tensor_type(std::move(shape), op.input(i).dtype)},
                  .flops = op.product_flops(),
                  .label = label,
                  .attributes = transposition(op, a, b)});
  const Shape own = op.input(i).shape;
  const Shape last = op.type_of(product).shape;
  const bool column =
      own.size() == 1 && last.size() > 2 && last.back() == 1 && own[0] == last[last.size() - 2];
  const TensorId sum = op.reduce_to(product, column ? Shape{own[0], 1} : own, label + "_sum");
  op.give(i, op.reshape(sum, own, label + "_vector"));
}

Shape batched(const Shape& batch, const Shape& matrix) {
  Shape shape(batch.begin(), batch.end() - 2);
  shape.insert(shape.end(), matrix.end() - 2, matrix.end());
  return shape;
}

// Matrices of two dimensions that serve a whole batch: all rows of all its members make one
// product.
void give_weights(OpGradient& op, TensorId dy, bool transposed) {
  Attributes attributes = transposition(op, {0, false}, {0, false});
  if (transposed) attributes.set("transB", std::int64_t{1});
  op.give(1, op.add_one({.type = "MatMulWeightGrad",
                         .inputs = {dy, op.kept_input(0)},
                         .outputs = {op.input(1)},
                         .flops = op.product_flops(),
                         .label = "1",
                         .attributes = std::move(attributes)}));
}

}  // namespace

// Also FusedMatMul, which may transpose its operands. A vector is a matrix of one row (on the left)
// or one column (on the right).
void matmul(OpGradient& op) {
  const std::size_t right = op.num_inputs() > 1 ? 1 : 0;  // x times x may list x once
  const bool trans_a = op.attributes().integer("transA", 0) != 0;
  const bool trans_b = op.attributes().integer("transB", 0) != 0;
  if (op.input(0).shape.empty() || op.input(right).shape.empty()) op.misfit();
  const Shape a = with_rank_two(op.input(0).shape, false);
  const Shape b = with_rank_two(op.input(right).shape, true);
  // The shape that the output has before single rows and columns are dropped.
  Shape y = op.output(0).shape;
  const std::size_t vectors =
      (op.input(0).shape.size() == 1 ? 1U : 0U) + (op.input(right).shape.size() == 1 ? 1U : 0U);
  if (y.size() + vectors < 2) op.misfit();
  if (op.input(0).shape.size() == 1 && op.input(right).shape.size() == 1) {
    y = {1, 1};
  } else if (op.input(0).shape.size() == 1) {
    y.insert(y.end() - 1, 1);
  } else if (op.input(right).shape.size() == 1) {
    y.push_back(1);
  }
  const TensorId dy = op.reshape(*op.gradient(), y, "matrix");
  const auto operand = [&](std::size_t i, const Shape& shape) {
    // Where a tensor is multiplied with itself both are input 0.
    const std::string_view use = &shape == &a ? "left" : "right";
    return op.reshape(op.kept_input(i), shape, fmt::format("operand_{}", use));
  };
  if (op.wants(0)) {
    const Factor other{operand(right, b), trans_a ? trans_b : !trans_b};
    const Factor gradient{dy, trans_a};
    give_product(op, 0, "0", trans_a ? other : gradient, trans_a ? gradient : other, batched(y, a));
  }
  if (!op.wants(right)) return;
  if (b.size() == 2 && a.size() > 2 && !trans_a && op.input(right).shape.size() == 2) {
    give_weights(op, dy, trans_b);
    return;
  }
  const Factor other{operand(0, a), trans_b ? trans_a : !trans_a};
  const Factor gradient{dy, trans_b};
  give_product(op, right, "1", trans_b ? gradient : other, trans_b ? other : gradient,
               batched(y, b));
}

namespace {

// The products below would be declared with the shapes that they should have.
void check_gemm(OpGradient& op, std::size_t right, bool trans_a, bool trans_b) {
  const Shape a = op.input(0).shape;
  const Shape b = op.input(right).shape;
  const Shape y = op.output(0).shape;
  const bool matrices = a.size() == 2 && b.size() == 2 && y.size() == 2;
  if (matrices && a[trans_a ? 0 : 1] == b[trans_b ? 1 : 0] && y[0] == a[trans_a ? 1 : 0] &&
      y[1] == b[trans_b ? 0 : 1]) {
    return;
  }
  fail_input("op '{}': matrices of [{}] and [{}] do not make one of [{}]", op.name(),
             fmt::join(a, ", "), fmt::join(b, ", "), fmt::join(y, ", "));
}

}  // namespace

void gemm(OpGradient& op) {
  const bool trans_a = op.attributes().integer("transA", 0) != 0;
  const bool trans_b = op.attributes().integer("transB", 0) != 0;
  const std::int64_t flops = op.product_flops();
  const TensorId dy = *op.gradient();
  const std::size_t right = op.num_inputs() > 1 ? 1 : 0;
  check_gemm(op, right, trans_a, trans_b);
  const auto give = [&](std::size_t i, std::string_view label, const Factor& a, const Factor& b) {
    op.give(i, op.add_one({.type = "Gemm",
                           .inputs = {a.tensor, b.tensor},
                           .outputs = {op.input(i)},
                           .flops = flops,
                           .label = label,
                           .attributes = transposition(op, a, b)}));
  };
  if (op.wants(0)) {
    const Factor other{op.kept_input(right), trans_a ? trans_b : !trans_b};
    const Factor gradient{dy, trans_a};
    give(0, "0", trans_a ? other : gradient, trans_a ? gradient : other);
  }
  if (op.wants(right)) {
    const Factor other{op.kept_input(0), trans_b ? trans_a : !trans_a};
    const Factor gradient{dy, trans_b};
    give(right, "1", trans_b ? gradient : other, trans_b ? other : gradient);
  }
  if (!op.wants(2)) return;
  const double beta = op.attributes().real("beta", 1);
  TensorId bias = op.reduce_to(dy, op.input(2).shape, "2");
  if (beta != 1) {
    bias = op.add_one({.type = "GemmBiasGrad",
                       .inputs = {bias},
                       .outputs = {op.input(2)},
                       .flops = count_elements(op.input(2).shape),
                       .label = "2_scale",
                       .attributes = {{"beta", beta}}});
  }
  op.give(2, bias);
}

// Each operand's gradient is a product of the output's gradient with the other operands; of a
// tensor that is several operands the gradients are added up.
void einsum(OpGradient& op) {
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (!op.wants(i)) continue;
    std::vector<TensorId> inputs{*op.gradient()};
    for (std::size_t other = 0; other < op.num_inputs(); ++other) {
      if (other != i || op.num_inputs() == 1) inputs.push_back(op.kept_input(other));
    }
    Attributes attributes = op.attributes();
    attributes.set("input", static_cast<std::int64_t>(i));
    op.give(i, op.add_one({.type = "EinsumGrad",
                           .inputs = std::move(inputs),
                           .outputs = {op.input(i)},
                           .flops = op.forward_flops(),
                           .label = std::to_string(i),
                           .attributes = std::move(attributes)}));
  }
}

// Also ConvTranspose.
void conv(OpGradient& op) {
  const std::int64_t flops = op.product_flops();
  const TensorId dy = *op.gradient();
  if (op.wants(0)) {
    op.give(0, op.add_one({.type = fmt::format("{}InputGrad", op.type()),
                           .inputs = {dy, op.kept_input(1)},
                           .outputs = {op.input(0)},
                           .flops = flops,
                           .label = "0",
                           .attributes = op.attributes()}));
  }
  if (op.wants(1)) {
    op.give(1, op.add_one({.type = fmt::format("{}WeightGrad", op.type()),
                           .inputs = {dy, op.kept_input(0)},
                           .outputs = {op.input(1)},
                           .flops = flops,
                           .label = "1",
                           .attributes = op.attributes()}));
  }
  if (!op.wants(2)) return;
  std::vector<std::int64_t> axes{0};
  for (std::size_t i = 2; i < op.output(0).shape.size(); ++i) {
    axes.push_back(static_cast<std::int64_t>(i));
  }
  op.give(2, op.add_one({.type = "ReduceSum",
                         .inputs = {dy},
                         .outputs = {op.input(2)},
                         .flops = count_elements(op.output(0).shape),
                         .label = "2",
                         .attributes = {{"axes", axes}, {"keepdims", std::int64_t{0}}}}));
}

// All of its inputs at once, from all of its inputs, the states that it put out and the gates that
// the forward op keeps.
void recurrent(OpGradient& op) {
  std::vector<TensorId> inputs = op.gradients();
  std::vector<TensorType> outputs;
  std::vector<std::int64_t> wanted;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    inputs.push_back(op.kept_input(i));
    if (!op.wants(i) || op.repeats(i)) continue;
    outputs.push_back(op.input(i));
    wanted.push_back(static_cast<std::int64_t>(i));
  }
  inputs.push_back(op.kept_output(0));
  if (const auto reserve = op.kept_reserve()) inputs.push_back(*reserve);
  Attributes attributes = op.attributes();
  attributes.set("wanted", wanted);
  if (const auto arrived = op.arrived(); arrived != std::vector<std::int64_t>{0}) {
    attributes.set("arrived", arrived);
  }
  // Products with W and R for the inputs' and states' gradients, and as many for the weights'.
  const auto gradients = op.add({.type = fmt::format("{}Grad", op.type()),
                                 .inputs = std::move(inputs),
                                 .outputs = std::move(outputs),
                                 .flops = saturating_multiply(2, op.forward_flops()),
                                 .attributes = std::move(attributes)});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    op.give(static_cast<std::size_t>(wanted[i]), gradients[i]);
  }
}

}  // namespace emplace::gradient_rules
