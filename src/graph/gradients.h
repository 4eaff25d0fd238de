// The gradient rules: for every operator, which gradient ops the backward pass adds, what they read
// and what they cost. docs/training.md lists the operators and what each keeps.
//
// Conventions.
// - A gradient op reads the gradients of the forward op's outputs first, then those inputs of the
//   forward op that it needs, then those outputs. Whatever it reads of the forward pass is thereby
//   kept until then. It carries the forward op's attributes.
// - Where gradients of other outputs than the first alone are read, the attribute `arrived` lists
//   these outputs.
// - "<Type>Grad" computes the gradients of all inputs at once, in the order of those inputs that
//   have one; where inputs get ops of their own, each says with the attribute `input` whose
//   gradient it is, or is called "<Type>InputGrad" or "<Type>WeightGrad".
// - Gradients that are themselves plain operators (Mul, MatMul, Gemm, Transpose, ReduceSum, Cast)
//   are just that, with the operands in that operator's order. Their numbers are attributes, not
//   inputs: `axes` and `keepdims` of ReduceSum, `transA` and `transB` also of MatMul.
// - A gradient has the shape and element type of the tensor that it is the gradient of.
// - Operators are known by their positions of inputs. A graph does not say which optional inputs
//   were left out, nor that one was given twice, so rules look at shapes where that matters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/gradient_graph.h"
#include "graph/graph.h"
#include "graph/tensor_type.h"

namespace emplace {

struct GradientRow;

// One forward op while its gradient ops are added: what a rule works with.
class OpGradient {
 public:
  OpGradient(GradientGraph& graph, const GradientRow& row, OpId op,
             const std::vector<std::uint8_t>& differentiable);

  const GradientRow& row() const { return row_; }
  std::string_view name() const { return forward().op_name(op_); }
  std::string_view type() const { return forward().type(op_); }
  const Attributes& attributes() const { return forward().attributes(op_); }

  std::size_t num_inputs() const { return forward().inputs(op_).size(); }
  std::size_t num_outputs() const { return forward().outputs(op_).size(); }
  // Throw an Error when the op has fewer.
  const TensorType& input(std::size_t i) const { return graph_.type(input_tensor(i)); }
  const TensorType& output(std::size_t i) const { return graph_.type(output_tensor(i)); }
  // Whether the input's gradient is to be computed.
  bool wants(std::size_t i) const;
  // Whether an earlier input is the same tensor.
  bool repeats(std::size_t i) const;
  // The forward op's multiplications and additions, those of a bias left out.
  std::int64_t product_flops() const;
  // All of them.
  std::int64_t forward_flops() const;

  // Forward tensors, as the backward pass reads them: kept, or computed again.
  TensorId kept_input(std::size_t i) { return graph_.kept(op_, input_tensor(i)); }
  TensorId kept_output(std::size_t i) { return graph_.kept(op_, output_tensor(i)); }
  // What the forward op keeps for this alone (GradientRow::reserve), if it does.
  std::optional<TensorId> kept_reserve();
  // The gradient of an output; nothing where none arrived.
  std::optional<TensorId> gradient(std::size_t output = 0) const;
  // All that arrived, and of which outputs these are.
  std::vector<TensorId> gradients() const;
  std::vector<std::int64_t> arrived() const;
  const TensorType& type_of(TensorId tensor) const { return graph_.type(tensor); }

  std::vector<TensorId> add(GradientOp op) { return graph_.add(op_, std::move(op)); }
  TensorId add_one(GradientOp op) { return add(std::move(op))[0]; }
  // Sums away what broadcasting to the gradient's shape repeated.
  TensorId reduce_to(TensorId gradient, const Shape& shape, std::string_view label);
  // The same elements under another shape.
  TensorId reshape(TensorId gradient, const Shape& shape, std::string_view label);
  // The gradient of input i is this; several of one tensor are added up.
  void give(std::size_t i, TensorId gradient);
  // Throws the Error that the op's tensors are not such as its operator takes.
  [[noreturn]] void misfit() const;

 private:
  TensorId input_tensor(std::size_t i) const;
  TensorId output_tensor(std::size_t i) const;
  const Graph& forward() const { return graph_.forward(); }

  GradientGraph& graph_;
  const GradientRow& row_;
  OpId op_;
  const std::vector<std::uint8_t>& differentiable_;  // by forward tensor
};

using GradientRule = void (*)(OpGradient&);

// Sets of positions among an op's inputs or outputs, as bits; the last stands for all that follow,
// too.
using Positions = std::uint8_t;
namespace positions {
inline constexpr Positions kNone = 0;
inline constexpr Positions kFirst = 1;
inline constexpr Positions kSecond = 2;
inline constexpr Positions kThird = 4;
inline constexpr Positions kButFirst = 0xFE;
inline constexpr Positions kAll = 0xFF;
constexpr bool contain(Positions set, std::size_t i) {
  return ((set >> (i < 7 ? i : 7)) & 1) != 0;
}
}  // namespace positions

struct GradientRow {
  std::string_view type;
  GradientRule rule = nullptr;  // nullptr: no gradient passes, as through a comparison
  int factor = 0;  // FLOPs for each element; of products, in halves of the forward op's
  Positions inputs = positions::kNone;  // kept for the gradient
  Positions outputs = positions::kNone;
  std::string_view keeps = {};                 // in words, where that is not the whole story
  Positions differentiable = positions::kAll;  // inputs that have a gradient if they are floating
  Positions passes = positions::kAll;          // outputs whose gradients count
  int reserve = 0;  // numbers for each hidden unit and step that a recurrent op keeps beside
};

// By type. Nothing when there is no rule.
const GradientRow* find_gradient_row(std::string_view type);
// Sorted by type.
std::span<const GradientRow> gradient_rows();
// What the backward pass keeps for the operator, in words: "X, Y".
std::string describe_kept(const GradientRow& row);

}  // namespace emplace
