#include "graph/gradients.h"

#include <algorithm>

#include "base/error.h"

#include "graph/op_costs.h"

namespace emplace {

OpGradient::OpGradient(GradientGraph& graph, const GradientRow& row, OpId op,
                       const std::vector<std::uint8_t>& differentiable)
    : graph_(graph), row_(row), op_(op), differentiable_(differentiable) {}

bool OpGradient::wants(std::size_t i) const {
  return i < num_inputs() && positions::contain(row_.differentiable, i) &&
         differentiable_[forward().inputs(op_)[i]] != 0;
}

bool OpGradient::repeats(std::size_t i) const {
  const auto inputs = forward().inputs(op_);
  const auto end = inputs.begin() + static_cast<std::ptrdiff_t>(i);
  return std::find(inputs.begin(), end, input_tensor(i)) != end;
}

void OpGradient::misfit() const {
  fail_input("op '{}': its inputs and outputs are not such as operator '{}' takes and gives",
             name(), type());
}

TensorId OpGradient::input_tensor(std::size_t i) const {
  if (i >= num_inputs()) misfit();
  return forward().inputs(op_)[i];
}

TensorId OpGradient::output_tensor(std::size_t i) const {
  if (i >= num_outputs()) misfit();
  return forward().outputs(op_)[i];
}

void OpGradient::give(std::size_t i, TensorId gradient) {
  if (type_of(gradient).shape != input(i).shape) misfit();
  graph_.give(input_tensor(i), gradient);
}

std::int64_t OpGradient::product_flops() const {
  const CostRow* row = find_cost_row("", type());
  if (row == nullptr) row = find_cost_row("com.microsoft", type());
  if (row != nullptr && row->rule != CostRule::kBody) {
    // A bias, where there is one, follows the two factors.
    std::vector<const TensorType*> inputs;
    for (std::size_t i = 0; i < std::min<std::size_t>(num_inputs(), 2); ++i) {
      inputs.push_back(&input(i));
    }
    const auto cost = count_cost(*row, type(), attributes(), inputs, {&output(0)});
    if (cost) return cost->flops;
  }
  return forward().flops(op_).value_or(0);
}

std::int64_t OpGradient::forward_flops() const {
  return forward().flops(op_).value_or(0);
}

std::optional<TensorId> OpGradient::kept_reserve() {
  const TensorId reserve = graph_.reserve(op_);
  if (reserve == kNoTensor) return std::nullopt;
  return graph_.kept(op_, reserve);
}

std::optional<TensorId> OpGradient::gradient(std::size_t output) const {
  if (output >= num_outputs() || !positions::contain(row_.passes, output)) return std::nullopt;
  const TensorId found = graph_.gradient(forward().outputs(op_)[output]);
  return found == kNoTensor ? std::nullopt : std::optional(found);
}

std::vector<TensorId> OpGradient::gradients() const {
  std::vector<TensorId> result;
  for (std::size_t i = 0; i < num_outputs(); ++i) {
    if (const auto found = gradient(i)) result.push_back(*found);
  }
  return result;
}

std::vector<std::int64_t> OpGradient::arrived() const {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < num_outputs(); ++i) {
    if (gradient(i)) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

TensorId OpGradient::reshape(TensorId gradient, const Shape& shape, std::string_view label) {
  const TensorType& from = type_of(gradient);
  if (from.shape == shape) return gradient;
  if (count_elements(from.shape) != count_elements(shape)) misfit();
  return add_one({.type = "Reshape",
                  .inputs = {gradient},
                  .outputs = {tensor_type(shape, from.dtype)},
                  .label = label,
                  .view = true,
                  .attributes = {{"shape", shape}}});
}

TensorId OpGradient::reduce_to(TensorId gradient, const Shape& shape, std::string_view label) {
  if (type_of(gradient).shape == shape) return gradient;
  const TensorType from = type_of(gradient);
  if (count_elements(from.shape) == count_elements(shape)) return reshape(gradient, shape, label);
  if (from.shape.size() < shape.size()) misfit();
  const std::size_t more = from.shape.size() - shape.size();
  std::vector<std::int64_t> axes;
  Shape kept;  // with the summed axes left out
  for (std::size_t axis = 0; axis < from.shape.size(); ++axis) {
    if (axis < more || shape[axis - more] != from.shape[axis]) {
      if (axis >= more && shape[axis - more] != 1) misfit();
      axes.push_back(static_cast<std::int64_t>(axis));
    } else {
      kept.push_back(from.shape[axis]);
    }
  }
  const bool keep_dims = more == 0;
  const TensorId sum =
      add_one({.type = "ReduceSum",
               .inputs = {gradient},
               .outputs = {tensor_type(keep_dims ? shape : kept, from.dtype)},
               .flops = count_elements(from.shape),
               .label = label,
               .attributes = {{"axes", axes}, {"keepdims", std::int64_t{keep_dims}}}});
  return reshape(sum, shape, fmt::format("{}_shape", label));
}

std::string describe_kept(const GradientRow& row) {
  if (row.rule == nullptr) return "no gradient";
  if (!row.keeps.empty()) return std::string(row.keeps);
  std::vector<std::string_view> words;
  if (row.inputs == positions::kAll) {
    words.push_back("all inputs");
  } else {
    if (positions::contain(row.inputs, 0)) words.push_back("X");
    if ((row.inputs & positions::kButFirst) == positions::kButFirst) {
      words.push_back("the other inputs");
    } else if (positions::contain(row.inputs, 1)) {
      words.push_back("the second input");
    }
  }
  if (positions::contain(row.outputs, 0)) words.push_back("Y");
  if (positions::contain(row.outputs, 1)) words.push_back("the other outputs");
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace emplace
