// Gradients of operators that make one element of one element, and of arithmetic.
#include <cmath>
#include <numbers>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

// From dy and what the forward op read or made.
using Slope = Tensor (*)(const Tensor& dy, const Tensor& other);

void add_gradient(KernelTable& table, const std::string& type, Slope function) {
  table[type] =
      single([function](const Call& call) { return function(call.left(), call.right()); });
}

// From (dy, y).
void add_gradients_of_results(KernelTable& table) {
  add_gradient(table, "ExpGrad", [](const Tensor& dy, const Tensor& y) { return dy * y; });
  add_gradient(table, "ReciprocalGrad",
               [](const Tensor& dy, const Tensor& y) { return -dy * y * y; });
  add_gradient(table, "ReluGrad",
               [](const Tensor& dy, const Tensor& y) { return at::threshold_backward(dy, y, 0); });
  add_gradient(table, "SigmoidGrad",
               [](const Tensor& dy, const Tensor& y) { return at::sigmoid_backward(dy, y); });
  add_gradient(table, "SqrtGrad", [](const Tensor& dy, const Tensor& y) { return dy / (2 * y); });
  add_gradient(table, "TanGrad",
               [](const Tensor& dy, const Tensor& y) { return dy * (1 + y * y); });
  add_gradient(table, "TanhGrad",
               [](const Tensor& dy, const Tensor& y) { return at::tanh_backward(dy, y); });
}

// From (dy, x).
void add_gradients_of_operands(KernelTable& table) {
  add_gradient(table, "AbsGrad", [](const Tensor& dy, const Tensor& x) { return dy * x.sign(); });
  add_gradient(table, "CosGrad", [](const Tensor& dy, const Tensor& x) { return -dy * x.sin(); });
  add_gradient(table, "ErfGrad", [](const Tensor& dy, const Tensor& x) {
    return dy * (-x * x).exp() * (2 / std::sqrt(std::numbers::pi));
  });
  add_gradient(table, "HardSwishGrad",
               [](const Tensor& dy, const Tensor& x) { return at::hardswish_backward(dy, x); });
  add_gradient(table, "LogGrad", [](const Tensor& dy, const Tensor& x) { return dy / x; });
  add_gradient(table, "SinGrad", [](const Tensor& dy, const Tensor& x) { return dy * x.cos(); });
  add_gradient(table, "SoftplusGrad", [](const Tensor& dy, const Tensor& x) {
    return at::softplus_backward(dy, x, 1, 20);
  });
  table["GeluGrad"] = single([](const Call& call) {
    const bool by_tanh = call.attributes.text("approximate") == "tanh";
    return at::gelu_backward(call.in(0), call.in(1), by_tanh ? "tanh" : "none");
  });
  table["LeakyReluGrad"] = single([](const Call& call) {
    return at::leaky_relu_backward(call.in(0), call.in(1), call.real("alpha", 0.01), false);
  });
  // x sigmoid(alpha x), whose alpha differs by what the op calls itself.
  for (const auto& [type, usual] :
       {std::pair("SwishGrad", 1.0), std::pair("QuickGeluGrad", 1.702)}) {
    table[type] = single([usual = usual](const Call& call) {
      const double alpha = call.real("alpha", usual);
      const Tensor& x = call.in(1);
      if (alpha == 1) return at::silu_backward(call.in(0), x);
      const Tensor gate = (x * alpha).sigmoid();
      return call.in(0) * gate * (1 + x * alpha * (1 - gate));
    });
  }
}

// dy, base, exponent: of one or the other, or of one that is both. Nothing comes of powers of zero.
Tensor power_gradient(const Call& call) {
  const Tensor& base = call.in(1);
  const Tensor exponent = call.in(call.has(2) ? 2 : 1).to(base.dtype());
  const auto of_base = [&] {
    return (exponent * base.pow(exponent - 1)).masked_fill(exponent == 0, 0);
  };
  const auto of_exponent = [&] {
    const Tensor slope = base.pow(exponent) * base.log();
    return slope.masked_fill((base == 0).logical_and(exponent >= 0), 0);
  };
  if (!call.has(2)) return call.in(0) * (of_base() + of_exponent());
  return call.in(0) * (call.integer("input", 0) == 0 ? of_base() : of_exponent());
}

void add_gradients_of_arithmetic(KernelTable& table) {
  add_gradient(table, "SquareGrad", [](const Tensor& dy, const Tensor& x) { return 2 * dy * x; });
  // Of the divisor: dy, dividend, divisor.
  table["DivGrad"] = single([](const Call& call) {
    const Tensor& divisor = call.in(call.has(2) ? 2 : 1);
    return -call.in(0) * call.in(1) / (divisor * divisor);
  });
  table["GemmBiasGrad"] =
      single([](const Call& call) { return call.in(0) * call.real("beta", 1); });
  table["MeanGrad"] = single([](const Call& call) {
    if (!call.given("count")) fail_input("attributes: 'count', how many operands, is missing");
    return call.in(0) / static_cast<double>(call.integer("count", 1));
  });
  table["PowGrad"] = single(power_gradient);
  // dy, condition.
  table["WhereGrad"] = single([](const Call& call) {
    const Tensor nothing = torch::zeros_like(call.in(0));
    return call.integer("input", 1) == 1 ? at::where(call.in(1), call.in(0), nothing)
                                         : at::where(call.in(1), nothing, call.in(0));
  });
}

}  // namespace

void add_elementwise_gradients(KernelTable& table) {
  add_gradients_of_results(table);
  add_gradients_of_operands(table);
  add_gradients_of_arithmetic(table);
}

}  // namespace emplace::exec
