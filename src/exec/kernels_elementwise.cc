// One element to one element, and broadcasting.
#include <cmath>
#include <limits>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

void add_unary(KernelTable& table, const std::string& type, Unary function) {
  table[type] = single([function](const Call& call) { return function(call.in(0)); });
}

void add_binary(KernelTable& table, const std::string& type, Binary function) {
  table[type] =
      single([function](const Call& call) { return function(call.left(), call.right()); });
}

// Of any number of operands, taken together from left to right.
void add_variadic(KernelTable& table, const std::string& type, Binary function) {
  table[type] = single([function](const Call& call) {
    Tensor result = call.in(0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i) result = function(result, call.in(i));
    return result;
  });
}

void add_trigonometry(KernelTable& table) {
  add_unary(table, "Acos", [](const Tensor& x) { return x.acos(); });
  add_unary(table, "Acosh", [](const Tensor& x) { return x.acosh(); });
  add_unary(table, "Asin", [](const Tensor& x) { return x.asin(); });
  add_unary(table, "Asinh", [](const Tensor& x) { return x.asinh(); });
  add_unary(table, "Atan", [](const Tensor& x) { return x.atan(); });
  add_unary(table, "Atanh", [](const Tensor& x) { return x.atanh(); });
  add_unary(table, "Cos", [](const Tensor& x) { return x.cos(); });
  add_unary(table, "Cosh", [](const Tensor& x) { return x.cosh(); });
  add_unary(table, "Sin", [](const Tensor& x) { return x.sin(); });
  add_unary(table, "Sinh", [](const Tensor& x) { return x.sinh(); });
  add_unary(table, "Tan", [](const Tensor& x) { return x.tan(); });
  add_unary(table, "Tanh", [](const Tensor& x) { return x.tanh(); });
}

void add_plain(KernelTable& table) {
  add_unary(table, "Abs", [](const Tensor& x) { return x.abs(); });
  add_unary(table, "BitwiseNot", [](const Tensor& x) { return x.bitwise_not(); });
  add_unary(table, "Ceil", [](const Tensor& x) { return x.ceil(); });
  add_unary(table, "Erf", [](const Tensor& x) { return x.erf(); });
  add_unary(table, "Exp", [](const Tensor& x) { return x.exp(); });
  add_unary(table, "Floor", [](const Tensor& x) { return x.floor(); });
  add_unary(table, "IsNaN", [](const Tensor& x) { return x.isnan(); });
  add_unary(table, "Log", [](const Tensor& x) { return x.log(); });
  add_unary(table, "Neg", [](const Tensor& x) { return x.neg(); });
  add_unary(table, "Not", [](const Tensor& x) { return x.logical_not(); });
  add_unary(table, "Reciprocal", [](const Tensor& x) { return x.reciprocal(); });
  add_unary(table, "Round", [](const Tensor& x) { return x.round(); });
  add_unary(table, "Sign", [](const Tensor& x) { return x.sign(); });
  add_unary(table, "Sqrt", [](const Tensor& x) { return x.sqrt(); });
  table["IsInf"] = single([](const Call& call) {
    const Tensor& x = call.in(0);
    const bool positive = call.integer("detect_positive", 1) != 0;
    if (call.integer("detect_negative", 1) == 0) {
      return positive ? x.isposinf() : torch::zeros_like(x, torch::kBool);
    }
    return positive ? x.isinf() : x.isneginf();
  });
  // An op marked so passes no gradient, as a detached tensor.
  table["Identity"] = single([](const Call& call) {
    return call.integer("__stop_gradient", 0) != 0 ? call.in(0).detach() : call.in(0);
  });
  // To what is the output's element type, which compile_op sees to.
  for (const char* type : {"Cast", "CastLike"}) {
    add_unary(table, type, [](const Tensor& x) { return x; });
  }
}

const char* gelu_kind(bool by_tanh) {
  return by_tanh ? "tanh" : "none";
}

void add_activations(KernelTable& table) {
  add_unary(table, "HardSwish", [](const Tensor& x) { return at::hardswish(x); });
  add_unary(table, "Mish", [](const Tensor& x) { return x * at::softplus(x).tanh(); });
  add_unary(table, "Relu", [](const Tensor& x) { return x.relu(); });
  add_unary(table, "Sigmoid", [](const Tensor& x) { return x.sigmoid(); });
  add_unary(table, "Softplus", [](const Tensor& x) { return at::softplus(x); });
  add_unary(table, "Softsign", [](const Tensor& x) { return x / (1 + x.abs()); });
  table["Celu"] =
      single([](const Call& call) { return at::celu(call.in(0), call.real("alpha", 1)); });
  table["Elu"] =
      single([](const Call& call) { return at::elu(call.in(0), call.real("alpha", 1)); });
  table["Gelu"] = single([](const Call& call) {
    return at::gelu(call.in(0), gelu_kind(call.attributes.text("approximate") == "tanh"));
  });
  table["HardSigmoid"] = single([](const Call& call) {
    return (call.in(0) * call.real("alpha", 0.2) + call.real("beta", 0.5)).clamp(0, 1);
  });
  table["LeakyRelu"] =
      single([](const Call& call) { return at::leaky_relu(call.in(0), call.real("alpha", 0.01)); });
  table["QuickGelu"] = single([](const Call& call) {
    return call.in(0) * (call.in(0) * call.real("alpha", 1.702)).sigmoid();
  });
  table["Selu"] = single([](const Call& call) {
    const double alpha = call.real("alpha", 1.6732632423543772);
    return call.real("gamma", 1.0507009873554805) * at::elu(call.in(0), alpha);
  });
  table["Shrink"] = single([](const Call& call) {
    const Tensor& x = call.in(0);
    const double limit = call.real("lambd", 0.5);
    const double bias = call.real("bias", 0);
    return at::where(x < -limit, x + bias, at::where(x > limit, x - bias, torch::zeros_like(x)));
  });
  table["Swish"] = single([](const Call& call) {
    const double alpha = call.real("alpha", 1);
    return alpha == 1 ? at::silu(call.in(0)) : call.in(0) * (call.in(0) * alpha).sigmoid();
  });
  table["ThresholdedRelu"] =
      single([](const Call& call) { return call.in(0) * (call.in(0) > call.real("alpha", 1)); });
  for (const char* type : {"BiasGelu", "FastGelu"}) {
    table[type] = single([by_tanh = std::string_view(type) == "FastGelu"](const Call& call) {
      return at::gelu(call.has(1) ? call.in(0) + call.in(1) : call.in(0), gelu_kind(by_tanh));
    });
  }
}

// Bounds are attributes or inputs, each of which may be absent.
Tensor clip(const Call& call) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor least = call.given_at(1);
  const Tensor most = call.given_at(2);
  const double low = least.defined() ? least.item<double>() : call.real("min", -infinity);
  const double high = most.defined() ? most.item<double>() : call.real("max", infinity);
  // Infinity is no integer.
  const auto bound = [](double value) {
    return std::isinf(value) ? c10::optional<at::Scalar>() : c10::optional<at::Scalar>(value);
  };
  if (std::isinf(low) && std::isinf(high)) return call.in(0);
  if (!call.in(0).is_floating_point()) {
    // As reals they would lose what is beyond 2^24.
    const auto whole = [](const Tensor& given, double otherwise) -> c10::optional<at::Scalar> {
      if (given.defined()) return at::Scalar(given.item<std::int64_t>());
      if (std::isinf(otherwise)) return {};
      return at::Scalar(static_cast<std::int64_t>(otherwise));
    };
    return call.in(0).clamp(whole(least, low), whole(most, high));
  }
  return call.in(0).clamp(bound(low), bound(high));
}

// Remainders have the divisor's sign, or with fmod the dividend's.
Tensor remainder(const Call& call) {
  if (call.integer("fmod", 0) != 0) return at::fmod(call.left(), call.right());
  return at::remainder(call.left(), call.right());
}

Tensor divide(const Tensor& a, const Tensor& b) {
  return a.is_floating_point() ? a / b : at::div(a, b, "trunc");
}

// An exponent that is known is a number on the CPU.
Tensor power(const Call& call) {
  const Tensor& exponent = call.right();
  if (exponent.dim() == 0 && exponent.is_cpu() && !exponent.requires_grad()) {
    return call.left().pow(exponent.item<double>());
  }
  return call.left().pow(exponent.to(call.left().dtype()));
}

void add_arithmetic(KernelTable& table) {
  add_binary(table, "Add", [](const Tensor& a, const Tensor& b) { return a + b; });
  add_binary(table, "BiasAdd", [](const Tensor& a, const Tensor& b) { return a + b; });
  add_binary(table, "Div", divide);
  add_binary(table, "Mul", [](const Tensor& a, const Tensor& b) { return a * b; });
  table["Pow"] = single(power);
  add_binary(table, "Sub", [](const Tensor& a, const Tensor& b) { return a - b; });
  add_binary(table, "PRelu",
             [](const Tensor& a, const Tensor& b) { return at::where(a < 0, a * b, a); });
  add_variadic(table, "Max", [](const Tensor& a, const Tensor& b) { return at::maximum(a, b); });
  add_variadic(table, "Min", [](const Tensor& a, const Tensor& b) { return at::minimum(a, b); });
  add_variadic(table, "Sum", [](const Tensor& a, const Tensor& b) { return a + b; });
  const Kernel sum = table["Sum"];
  table["Mean"] = single(
      [sum](const Call& call) { return sum(call)[0] / static_cast<double>(call.inputs.size()); });
  table["Mod"] = single(remainder);
  table["Clip"] = single(clip);
  table["Where"] = single([](const Call& call) {
    return at::where(call.in(0), call.in(1), call.in(call.has(2) ? 2 : 1));
  });
}

void add_comparisons(KernelTable& table) {
  add_binary(table, "And", [](const Tensor& a, const Tensor& b) { return a.logical_and(b); });
  add_binary(table, "BitwiseAnd", [](const Tensor& a, const Tensor& b) { return a & b; });
  add_binary(table, "BitwiseOr", [](const Tensor& a, const Tensor& b) { return a | b; });
  add_binary(table, "BitwiseXor", [](const Tensor& a, const Tensor& b) { return a ^ b; });
  add_binary(table, "Equal", [](const Tensor& a, const Tensor& b) { return a == b; });
  add_binary(table, "Greater", [](const Tensor& a, const Tensor& b) { return a > b; });
  add_binary(table, "GreaterOrEqual", [](const Tensor& a, const Tensor& b) { return a >= b; });
  add_binary(table, "Less", [](const Tensor& a, const Tensor& b) { return a < b; });
  add_binary(table, "LessOrEqual", [](const Tensor& a, const Tensor& b) { return a <= b; });
  add_binary(table, "Or", [](const Tensor& a, const Tensor& b) { return a.logical_or(b); });
  add_binary(table, "Xor", [](const Tensor& a, const Tensor& b) { return a.logical_xor(b); });
}

}  // namespace

void add_elementwise(KernelTable& table) {
  add_trigonometry(table);
  add_plain(table);
  add_activations(table);
  add_arithmetic(table);
  add_comparisons(table);
}

}  // namespace emplace::exec
