#include "io/onnx_fold.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "io/onnx_fold_call.h"
#include "io/onnx_node.h"

namespace emplace {
namespace {

using namespace onnx_fold;
using onnx::NodeProto;
using onnx::TensorProto;

using Unary = long double (*)(long double);
using Binary = long double (*)(long double, long double, bool integral);

Folded fold_unary(const Call& call, Unary function) {
  if (call.data(0) == nullptr) return std::nullopt;
  SmallTensor to = *call.data(0);
  for (auto& value : to.values) value = function(value);
  return to;
}

// `result_type` 0: that of the inputs.
Folded fold_binary(const Call& call, Binary function, int result_type) {
  if (call.inputs.empty() || call.data(0) == nullptr) return std::nullopt;
  SmallTensor to = *call.data(0);
  for (std::size_t k = 1; k < call.inputs.size(); ++k) {
    const SmallTensor* next = call.data(k);
    if (next == nullptr) return std::nullopt;
    const auto dims = broadcast(to.dims, next->dims);
    if (!dims) return std::nullopt;
    to = expand_to(to, *dims);
    const SmallTensor other = expand_to(*next, *dims);
    for (std::size_t i = 0; i < to.values.size(); ++i) {
      to.values[i] = function(to.values[i], other.values[i], to.is_integral());
      if (std::isnan(to.values[i])) return std::nullopt;
    }
  }
  if (result_type != 0) to.elem_type = result_type;
  return to;
}

// Over all elements, as in the product of a shape; keepdims keeps as many axes of length one.
Folded fold_reduce(const Call& call, Binary function) {
  const SmallTensor* from = call.data(0);
  if (from == nullptr || from->dims.size() > 1 || from->values.empty()) return std::nullopt;
  if (int_attribute(call.node, "noop_with_empty_axes", 0) != 0) return std::nullopt;
  SmallTensor to{.elem_type = from->elem_type, .values = {from->values[0]}};
  if (int_attribute(call.node, "keepdims", 1) != 0) to.dims.assign(from->dims.size(), 1);
  for (std::size_t i = 1; i < from->values.size(); ++i) {
    to.values[0] = function(to.values[0], from->values[i], from->is_integral());
  }
  return to;
}

long double add(long double a, long double b, bool) {
  return a + b;
}
long double subtract(long double a, long double b, bool) {
  return a - b;
}
long double multiply(long double a, long double b, bool) {
  return a * b;
}
// Not a number stands for a division by zero, which has no result to go on with.
long double divide(long double a, long double b, bool integral) {
  if (b == 0) return std::nanl("");
  return integral ? std::trunc(a / b) : a / b;
}
long double modulo(long double a, long double b, bool integral) {
  if (b == 0) return std::nanl("");
  const long double rest = std::fmod(a, b);
  return integral && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
long double minimum(long double a, long double b, bool) {
  return std::min(a, b);
}
long double maximum(long double a, long double b, bool) {
  return std::max(a, b);
}
long double equal(long double a, long double b, bool) {
  return a == b ? 1 : 0;
}
long double less(long double a, long double b, bool) {
  return a < b ? 1 : 0;
}
long double less_or_equal(long double a, long double b, bool) {
  return a <= b ? 1 : 0;
}
long double greater(long double a, long double b, bool) {
  return a > b ? 1 : 0;
}
long double greater_or_equal(long double a, long double b, bool) {
  return a >= b ? 1 : 0;
}
long double both(long double a, long double b, bool) {
  return a != 0 && b != 0 ? 1 : 0;
}
long double either(long double a, long double b, bool) {
  return a != 0 || b != 0 ? 1 : 0;
}

template <Binary function, int result_type = 0>
Folded binary(const Call& call) {
  return fold_binary(call, function, result_type);
}

using Fold = Folded (*)(const Call&);

const std::unordered_map<std::string_view, Fold>& folds() {
  constexpr int kBool = TensorProto::BOOL;
  static const std::unordered_map<std::string_view, Fold> table = {
      {"Shape", fold_shape},
      {"Size", fold_size},
      {"Identity", fold_identity},
      {"Cast", fold_cast},
      {"Gather", fold_gather},
      {"Concat", fold_concat},
      {"Unsqueeze", fold_unsqueeze},
      {"Squeeze", fold_squeeze},
      {"Reshape", fold_reshape},
      {"Transpose", fold_transpose},
      {"Slice", fold_slice},
      {"Where", fold_where},
      {"Range", fold_range},
      {"ConstantOfShape", fold_constant_of_shape},
      {"Expand", fold_expand},
      {"Add", binary<add>},
      {"Sub", binary<subtract>},
      {"Mul", binary<multiply>},
      {"Div", binary<divide>},
      {"Mod", binary<modulo>},
      {"Min", binary<minimum>},
      {"Max", binary<maximum>},
      {"Equal", binary<equal, kBool>},
      {"Less", binary<less, kBool>},
      {"LessOrEqual", binary<less_or_equal, kBool>},
      {"Greater", binary<greater, kBool>},
      {"GreaterOrEqual", binary<greater_or_equal, kBool>},
      {"And", binary<both, kBool>},
      {"Or", binary<either, kBool>},
      {"Not",
       [](const Call& call) {
         return fold_unary(call, [](long double x) -> long double { return x == 0 ? 1 : 0; });
       }},
      {"Neg", [](const Call& call) { return fold_unary(call, [](long double x) { return -x; }); }},
      {"Abs",
       [](const Call& call) {
         return fold_unary(call, [](long double x) { return std::fabs(x); });
       }},
      {"Floor",
       [](const Call& call) {
         return fold_unary(call, [](long double x) { return std::floor(x); });
       }},
      {"Ceil",
       [](const Call& call) {
         return fold_unary(call, [](long double x) { return std::ceil(x); });
       }},
      {"ReduceProd", [](const Call& call) { return fold_reduce(call, multiply); }},
      {"ReduceSum", [](const Call& call) { return fold_reduce(call, add); }},
      {"ReduceMax", [](const Call& call) { return fold_reduce(call, maximum); }},
      {"ReduceMin", [](const Call& call) { return fold_reduce(call, minimum); }},
  };
  return table;
}

}  // namespace

std::optional<SmallTensor> fold_node(const NodeProto& node,
                                     const std::vector<const OnnxValue*>& inputs) {
  if (!canonical_domain(node.domain()).empty()) return std::nullopt;
  if (node.op_type() == "Constant") {
    const auto* value = find_attribute(node, "value");
    if (value != nullptr) return parse_small_tensor(value->t());
    if (const auto* number = find_attribute(node, "value_int")) {
      SmallTensor tensor = integers({number->i()});
      tensor.dims.clear();
      return tensor;
    }
    const Dims numbers = ints_attribute(node, "value_ints");
    return numbers.empty() || numbers.size() > SmallTensor::kMaxElements
               ? std::nullopt
               : Folded(integers(numbers));
  }
  const auto found = folds().find(node.op_type());
  return found == folds().end() ? std::nullopt : found->second({node, inputs});
}

}  // namespace emplace
