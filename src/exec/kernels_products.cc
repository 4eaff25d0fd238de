// Sums of products by formula. Matrix products are in native_products.cc.
#include <algorithm>

#include "base/error.h"

#include "exec/derive.h"
#include "exec/kernel.h"

namespace emplace::exec {
namespace {

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
  if (gradient.inputs.empty()) fail_input("has no inputs, expected the gradient of its result");
  call.inputs.assign(gradient.inputs.begin() + 1, gradient.inputs.end());
  if (count == 1) call.inputs.clear();
  if (call.inputs.size() + 1 != count || target >= count) {
    fail_input("reads {} operands beside its own, expected {}", call.inputs.size(), count - 1);
  }
  call.inputs.insert(call.inputs.begin() + static_cast<std::ptrdiff_t>(target),
                     gradient.zeros(gradient.shape()));
  return gradients_of(single(einsum), call, {target}, gradient.inputs, {0});
}

}  // namespace

void add_products(KernelTable& table) {
  table["Einsum"] = single(einsum);
  table["EinsumGrad"] = einsum_gradient;
}

}  // namespace emplace::exec
