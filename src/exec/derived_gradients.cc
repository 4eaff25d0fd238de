// Gradients that follow from the operator itself: run it on what its gradient op reads, and let
// libtorch differentiate. Inputs that a gradient op does not read do not matter to it (the operator
// is linear in them), so zeros stand in for them.
#include <algorithm>

#include "base/error.h"

#include "graph/gradient_rules.h"
#include "graph/gradients.h"

#include "exec/derive.h"
#include "exec/kernel.h"

namespace emplace::exec {
namespace {

namespace rules = gradient_rules;

constexpr std::size_t kMostOperands = 64;  // of an operator that gradients are derived of

// Of a gradient op, the call of the operator itself.
Call forward_of(const GradientRow& row, const Call& gradient, const Integers& arrived) {
  Call call{.type = std::string(row.type),
            .attributes = gradient.attributes,
            .training = gradient.training,
            .floating = gradient.floating,
            .stream = gradient.stream};
  const bool ends_in_output = row.outputs == positions::kFirst || row.outputs == positions::kSecond;
  const std::size_t end = gradient.inputs.size() - (ends_in_output ? 1 : 0);
  std::size_t next = arrived.size();
  for (std::size_t i = 0;; ++i) {
    const bool kept = positions::contain(row.inputs, i);
    if (i > 0 && (!kept || next >= end)) break;
    call.inputs.push_back(kept ? gradient.in(next++) : gradient.zeros(gradient.shape()));
  }
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    const auto at = static_cast<std::size_t>(arrived[i]);
    if (at >= kMostOperands) fail_input("has a gradient of result {}", arrived[i]);
    if (call.outputs.size() <= at) call.outputs.resize(at + 1);
    const Tensor& dy = gradient.in(i);
    call.outputs[at] = tensor_type({dy.sizes().begin(), dy.sizes().end()}, DType::kFloat64);
  }
  return call;
}

// Which inputs' gradients the op's outputs are.
Integers targets_of(const GradientRow& row, const Call& gradient) {
  if (row.rule == rules::single) return {0};
  if (row.rule == rules::each_operand) return {gradient.integer("input", 0)};
  if (gradient.given("wanted")) return gradient.integers("wanted");
  Integers all;
  for (std::size_t i = 0; i < gradient.outputs.size(); ++i) {
    all.push_back(static_cast<std::int64_t>(i));
  }
  return all;
}

Tensors differentiate(const GradientRow& row, const Kernel& kernel, const Call& gradient) {
  const Integers arrived = arrived_gradients(gradient);
  Call call = forward_of(row, gradient, arrived);
  const Integers targets = targets_of(row, gradient);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    auto at = static_cast<std::size_t>(targets[i]);
    if (row.rule == rules::each_operand) {
      // Before what broadcasting repeated is summed up. An operand that was given twice is there
      // once.
      at = std::min(at, call.inputs.size() - 1);
      call.inputs[at] = call.inputs[at].expand(gradient.in(0).sizes());
      return gradients_of(kernel, call, {at}, gradient.inputs, arrived);
    }
    if (at >= kMostOperands) fail_input("there is no gradient of input {}", at);
    while (call.inputs.size() <= at) call.inputs.push_back(gradient.zeros(gradient.shape(i)));
  }
  return gradients_of(kernel, call, {targets.begin(), targets.end()}, gradient.inputs, arrived);
}

bool is_derived(GradientRule rule) {
  return rule == rules::single || rule == rules::joint || rule == rules::joint_product ||
         rule == rules::fused_attention || rule == rules::each_operand;
}

}  // namespace

bool can_be_derived(std::string_view type) {
  constexpr std::string_view kSuffix = "Grad";
  if (!type.ends_with(kSuffix)) return false;
  const GradientRow* row = find_gradient_row(type.substr(0, type.size() - kSuffix.size()));
  return row != nullptr && is_derived(row->rule);
}

Integers arrived_gradients(const Call& gradient) {
  return gradient.given("arrived") ? gradient.integers("arrived") : Integers{0};
}

Tensors gradients_of(const Kernel& kernel, Call call, const std::vector<std::size_t>& targets,
                     const Tensors& gradients, const Integers& arrived) {
  const torch::AutoGradMode enabled(true);
  for (Tensor& input : call.inputs) input = input.detach();
  Tensors leaves;
  for (const std::size_t target : targets) {
    call.inputs.at(target) = call.inputs[target].clone().requires_grad_();
    leaves.push_back(call.inputs[target]);
  }
  const Tensors all = kernel(call);
  Tensors results;
  Tensors seeds;
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    const Tensor& result = all.at(static_cast<std::size_t>(arrived[i]));
    if (!result.requires_grad()) continue;
    results.push_back(result);
    seeds.push_back(gradients.at(i).detach());
  }
  if (results.empty()) {
    for (Tensor& leaf : leaves) leaf = torch::zeros_like(leaf.detach());
    return leaves;
  }
  Tensors found = torch::autograd::grad(results, leaves, seeds, {}, false, true);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) found[i] = torch::zeros_like(leaves[i].detach());
  }
  return found;
}

void add_derived_gradients(KernelTable& table) {
  for (const GradientRow& row : gradient_rows()) {
    const auto forward = table.find(row.type);
    if (forward == table.end() || !is_derived(row.rule)) continue;
    table.try_emplace(std::string(row.type) + "Grad",
                      [&row, kernel = forward->second](const Call& gradient) {
                        return differentiate(row, kernel, gradient);
                      });
  }
}

}  // namespace emplace::exec
