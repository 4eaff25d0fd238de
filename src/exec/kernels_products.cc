// Matrix products and sums of products.
#include <algorithm>

#include "base/error.h"

#include "exec/derive.h"
#include "exec/kernel.h"

namespace emplace::exec {
namespace {

Tensor transposed(const Tensor& x, bool whether) {
  return whether && x.dim() >= 2 ? x.transpose(-2, -1) : x;
}

Tensor scaled(const Tensor& x, double factor) {
  return factor == 1 ? x : x * factor;
}

Tensor product(const Call& call) {
  const Tensor a = transposed(call.left(), call.integer("transA", 0) != 0);
  const Tensor b = transposed(call.right(), call.integer("transB", 0) != 0);
  return scaled(a.matmul(b), call.real("alpha", 1));
}

Tensor gemm(const Call& call) {
  const Tensor sum = product(call);
  return call.has(2) ? sum + scaled(call.in(2), call.real("beta", 1)) : sum;
}

// From dy [..., n] and A [..., k]: the rows of all batches make one product, of B's shape.
Tensor weight_gradient(const Call& call) {
  const Tensor dy = call.in(0).reshape({-1, call.in(0).size(-1)});
  const Tensor a = call.in(1).reshape({-1, call.in(1).size(-1)});
  const bool trans_b = call.integer("transB", 0) != 0;
  return scaled(trans_b ? dy.t().matmul(a) : a.t().matmul(dy), call.real("alpha", 1));
}

std::string equation_of(const Call& call) {
  std::string equation(call.attributes.text("equation"));
  std::erase(equation, ' ');
  if (equation.empty()) fail_input("attributes: 'equation' is missing");
  return equation;
}

std::size_t count_operands(const std::string& equation) {
  const auto end = equation.begin() +
                   static_cast<std::ptrdiff_t>(std::min(equation.find("->"), equation.size()));
  return static_cast<std::size_t>(std::count(equation.begin(), end, ',')) + 1;
}

// An operand that was given twice may be listed once.
Tensor einsum(const Call& call) {
  const std::string equation = equation_of(call);
  Tensors inputs = call.inputs;
  while (inputs.size() < count_operands(equation)) inputs.push_back(call.in(0));
  return at::einsum(equation, inputs);
}

// From dy and the other operands (of a single one, itself). The op is linear in each.
Tensors einsum_gradient(const Call& gradient) {
  const std::size_t count = count_operands(equation_of(gradient));
  const auto target = static_cast<std::size_t>(gradient.integer("input", 0));
  Call call{.type = "Einsum", .attributes = gradient.attributes};
  call.inputs.assign(gradient.inputs.begin() + 1, gradient.inputs.end());
  if (count == 1) call.inputs.clear();
  if (call.inputs.size() + 1 != count || target >= count) {
    fail_input("reads {} operands beside its own, expected {}", call.inputs.size(), count - 1);
  }
  call.inputs.insert(call.inputs.begin() + static_cast<std::ptrdiff_t>(target),
                     zeros(gradient.shape()));
  return gradients_of(single(einsum), call, {target}, gradient.inputs, {0});
}

}  // namespace

void add_products(KernelTable& table) {
  for (const char* type : {"MatMul", "FusedMatMul", "TransposeMatMul"}) {
    table[type] = single(product);
  }
  table["Gemm"] = single(gemm);
  table["MatMulWeightGrad"] = single(weight_gradient);
  table["Einsum"] = single(einsum);
  table["EinsumGrad"] = einsum_gradient;
}

}  // namespace emplace::exec
