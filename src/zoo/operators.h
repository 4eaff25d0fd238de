// ONNX operators on a Net's values, with their shape rules. Arguments that do not fit throw an
// Error that names the module.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "zoo/net.h"

namespace emplace::zoo {

// One element to one element: Relu, Sigmoid, Tanh, Gelu, Swish, Sqrt, Exp, Neg, ...
Value unary(Net& net, std::string_view type, const Value& x);
// Broadcast: Add, Sub, Mul, Div, Pow.
Value binary(Net& net, std::string_view type, const Value& a, const Value& b);

inline Value relu(Net& net, const Value& x) {
  return unary(net, "Relu", x);
}
inline Value sigmoid(Net& net, const Value& x) {
  return unary(net, "Sigmoid", x);
}
inline Value tanh(Net& net, const Value& x) {
  return unary(net, "Tanh", x);
}
inline Value gelu(Net& net, const Value& x) {
  return unary(net, "Gelu", x);
}
inline Value silu(Net& net, const Value& x) {
  return unary(net, "Swish", x);
}
inline Value add(Net& net, const Value& a, const Value& b) {
  return binary(net, "Add", a, b);
}
inline Value sub(Net& net, const Value& a, const Value& b) {
  return binary(net, "Sub", a, b);
}
inline Value mul(Net& net, const Value& a, const Value& b) {
  return binary(net, "Mul", a, b);
}
inline Value div(Net& net, const Value& a, const Value& b) {
  return binary(net, "Div", a, b);
}
// Added up pairwise, in order. With several calls in the list, their ops come in its order, which
// that of a function's arguments need not be.
Value sum(Net& net, const Values& values);
Value scale(Net& net, const Value& x, double factor);

// Batched over the leading dimensions, which broadcast.
Value matmul(Net& net, const Value& a, const Value& b);
// x [n, in] times w [out, in] transposed, plus the bias [out].
Value gemm(Net& net, const Value& x, const Value& w, const std::optional<Value>& bias);

// One dimension may be -1: what is left.
Value reshape(Net& net, const Value& x, Shape shape);
Value transpose(Net& net, const Value& x, const std::vector<std::int64_t>& order);
Value unsqueeze(Net& net, const Value& x, std::int64_t axis);
Value squeeze(Net& net, const Value& x, std::int64_t axis);
Value expand(Net& net, const Value& x, const Shape& shape);
Value concat(Net& net, const Values& values, std::int64_t axis);
Values split(Net& net, const Value& x, const std::vector<std::int64_t>& sizes, std::int64_t axis);
Values split_evenly(Net& net, const Value& x, std::int64_t parts, std::int64_t axis);
Value slice(Net& net, const Value& x, std::int64_t axis, std::int64_t start, std::int64_t end);
// `amounts` are [begin of each axis..., end of each axis...].
Value pad(Net& net, const Value& x, const std::vector<std::int64_t>& amounts);
// Rows (slices along the axis) of the table by number.
Value gather(Net& net, const Value& table, const Value& ids, std::int64_t axis = 0);

Value softmax(Net& net, const Value& x, std::int64_t axis = -1);
Value reduce(Net& net, std::string_view type, const Value& x, std::vector<std::int64_t> axes,
             bool keep_dims);  // ReduceMean, ReduceSum, ReduceMax

// Of any number of spatial dimensions; lists have one number for each, or one for all.
struct ConvShape {
  std::vector<std::int64_t> kernel = {1};
  std::vector<std::int64_t> stride = {1};
  std::vector<std::int64_t> padding = {0};     // at both ends
  std::vector<std::int64_t> end_padding = {};  // at the end, where it differs
  std::vector<std::int64_t> dilation = {1};
  std::int64_t groups = 1;
};

Value conv(Net& net, const Value& x, const Value& weight, const std::optional<Value>& bias,
           const ConvShape& shape);
Value max_pool(Net& net, const Value& x, const ConvShape& shape, bool ceil = false);
Value average_pool(Net& net, const Value& x, const ConvShape& shape, bool count_padding = false);
Value global_average_pool(Net& net, const Value& x);  // [n, c, ...] to [n, c]

// The mean over all rows of logits [n, classes] (or [n, classes, ...]) against labels [n, ...].
Value cross_entropy(Net& net, const Value& logits, const Value& labels);

}  // namespace emplace::zoo
