// Operators of single elements, reductions and functions of rows.
#include <algorithm>
#include <iterator>

#include "tensor/captured/rules.h"

namespace emplace::captured {
namespace {

bool is_real(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

std::vector<TensorId> all_inputs(Translation& at) {
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < at.num_inputs(); ++i) inputs.push_back(at.take(i));
  return inputs;
}

// Of a number beside a tensor.
DType type_beside(double value, DType tensor, DType result) {
  if (is_real(tensor)) return tensor;
  if (is_real(result)) return result;
  const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
  if (!whole) return DType::kFloat32;
  return tensor == DType::kBool ? DType::kInt64 : tensor;
}

// Operands of arithmetic, the second of which may be a number.
std::optional<std::vector<TensorId>> operands_of(Translation& at) {
  if (at.num_outputs() != 1) return std::nullopt;
  if (at.num_inputs() == 2) return std::vector{at.operand(0), at.operand(1)};
  if (at.num_inputs() != 1) return std::nullopt;
  for (const char* name : {"other", "exponent", "self"}) {
    if (!at.given(name)) continue;
    const double value = at.attributes().real(name, 0);
    const DType dtype = type_beside(value, at.in_type(0), at.out_type());
    const TensorId number = at.number(value, dtype);
    const TensorId tensor = at.take(0);
    return std::string_view(name) == "self" ? std::vector{number, tensor}
                                            : std::vector{tensor, number};
  }
  return std::nullopt;
}

// The second operand, times `alpha`.
void scale_second(Translation& at, std::vector<TensorId>& operands) {
  const double alpha = at.attributes().real("alpha", 1);
  if (alpha == 1) return;
  const bool tensor = at.num_inputs() > 1 && at.value(1).root;
  operands[1] = at.add("scaled", "Mul", {operands[1], at.number(alpha, at.out_type())},
                       TensorSpec{.shape = tensor ? at.in(1) : Shape{}, .dtype = at.out_type()});
}

}  // namespace

bool same(Translation& at, std::string_view onnx) {
  if (at.num_inputs() == 0 || at.num_outputs() != 1) return false;
  at.replace(onnx, all_inputs(at));
  return true;
}

bool with_attributes(Translation& at, std::string_view onnx) {
  if (at.num_inputs() == 0 || at.num_outputs() != 1) return false;
  at.replace(onnx, all_inputs(at), at.attributes());
  return true;
}

bool binary(Translation& at, std::string_view onnx) {
  if (at.given("rounding_mode")) return false;
  if (onnx == "Div" && !is_real(at.in_type(0))) return false;  // PyTorch's is a fraction
  auto operands = operands_of(at);
  if (!operands) return false;
  scale_second(at, *operands);
  at.replace(onnx, std::move(*operands));
  return true;
}

bool reversed(Translation& at, std::string_view onnx) {
  if (at.attributes().real("alpha", 1) != 1) return false;
  const auto operands = operands_of(at);
  if (!operands) return false;
  at.replace(onnx, {(*operands)[1], (*operands)[0]});
  return true;
}

bool not_equal(Translation& at, std::string_view) {
  auto operands = operands_of(at);
  if (!operands) return false;
  const TensorId equal =
      at.add("equal", "Equal", std::move(*operands), {.shape = at.out(), .dtype = DType::kBool});
  at.replace("Not", {equal});
  return true;
}

bool reciprocal_root(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  const TensorId root =
      at.add("root", "Sqrt", {at.take(0)}, {.shape = at.out(), .dtype = at.out_type()});
  at.replace("Reciprocal", {root});
  return true;
}

// From dY and X or Y, which are above zero alike.
bool relu_gradient(Translation& at, std::string_view) {
  if (at.num_inputs() != 2 || at.attributes().real("threshold", 0) != 0) return false;
  at.replace("ReluGrad", {at.take(0), at.take(1)});
  return true;
}

bool leaky_gradient(Translation& at, std::string_view) {
  if (at.num_inputs() != 2 || at.integer("self_is_result", 0) != 0 || !at.given("alpha")) {
    return false;
  }
  at.replace("LeakyReluGrad", {at.take(0), at.take(1)},
             {{"alpha", at.attributes().real("alpha", 0.01)}});
  return true;
}

// Only as it is by default.
bool without_settings(Translation& at, std::string_view onnx) {
  return at.attributes().empty() && same(at, onnx);
}

bool clamp(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  Attributes bounds;
  // What captures do not say is as PyTorch has it by default.
  if (at.type() == "hardtanh") bounds = {{"min", -1.0}, {"max", 1.0}};
  for (const auto& [theirs, ours] :
       {std::pair("min", "min"), {"max", "max"}, {"min_val", "min"}, {"max_val", "max"}}) {
    if (at.given(theirs)) bounds.set(ours, at.attributes().real(theirs, 0));
  }
  at.replace("Clip", {at.take(0)}, std::move(bounds));
  return true;
}

bool masked_fill(Translation& at, std::string_view) {
  if (at.num_inputs() < 2 || at.num_outputs() != 1) return false;
  if (at.num_inputs() == 2 && !at.given("value")) return false;
  const TensorId value = at.num_inputs() > 2
                             ? at.operand(2)
                             : at.number(at.attributes().real("value", 0), at.out_type());
  at.replace("Where", {at.take(1), value, at.take(0)});
  return true;
}

// To what is the output's element type.
bool cast(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  if (at.in_type(0) == at.out_type()) {
    at.set(0, at.value(0));
  } else {
    at.replace("Cast", {at.take(0)});
  }
  return true;
}

// A tensor of one number, which the row or an attribute says.
bool filled(Translation& at, std::string_view number) {
  if (at.num_outputs() != 1) return false;
  double value = 0;
  if (number.empty()) {
    const char* names[] = {"fill_value", "value", "s"};
    const auto* found =
        std::find_if(std::begin(names), std::end(names), [&](auto name) { return at.given(name); });
    if (found == std::end(names)) return false;
    value = at.attributes().real(*found, 0);
  } else {
    value = number == "1" ? 1 : 0;
  }
  at.set(0, Value{.root_shape = at.out(), .number = value, .dtype = at.out_type()});
  return true;
}

// start, start + step, ...
bool counted(Translation& at, std::string_view) {
  constexpr std::int64_t kLongest = 1 << 20;
  if (at.num_inputs() != 0 || at.num_outputs() != 1 || at.out().size() != 1) return false;
  const double start = at.attributes().real("start", 0);
  const double step = at.attributes().real("step", 1);
  const std::int64_t count = at.out()[0];
  if (count < 1 || count > kLongest || !at.given("end")) return false;
  if (is_real(at.out_type())) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(start + step * static_cast<double>(i));
    at.replace_by_constant({{"value", std::move(values)}});
    return true;
  }
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<std::int64_t>(start) + static_cast<std::int64_t>(step) * i);
  }
  at.replace_by_constant({{"value", std::move(values)}});
  return true;
}

// Over all axes where it names none.
bool reduction(Translation& at, std::string_view onnx) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  Attributes attributes{{"keepdims", at.integer("keepdims", 0)}};
  const auto rank = static_cast<std::int64_t>(at.in(0).size());
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : at.attributes().integers("axes")) {
    if (axis < -rank || axis >= rank) return false;
    axes.push_back(axis < 0 ? axis + rank : axis);
  }
  if (axes.empty() && at.given("axes")) {
    const auto single = at.axis({"axes"}, at.in(0).size());
    if (single) axes.push_back(static_cast<std::int64_t>(*single));
  }
  if (axes.empty() && !at.out().empty()) return false;
  if (!axes.empty()) attributes.set("axes", std::move(axes));
  at.replace(onnx, {at.take(0)}, std::move(attributes));
  return true;
}

bool along_axis(Translation& at, std::string_view onnx) {
  const auto axis = at.axis({"axis"}, at.out().size());
  if (!axis || at.num_outputs() != 1) return false;
  at.replace(onnx, all_inputs(at), {{"axis", static_cast<std::int64_t>(*axis)}});
  return true;
}

}  // namespace emplace::captured
