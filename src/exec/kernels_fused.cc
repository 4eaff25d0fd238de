// Contrib operators that are several in one: they call the kernels of these.
#include <algorithm>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

// The attribute `activation` names another operator.
Tensor activated(const KernelTable& table, const Call& call, const Tensor& x) {
  const std::string_view activation = call.attributes.text("activation");
  if (activation.empty()) return x;
  const auto found = table.find(activation);
  if (found == table.end()) {
    fail(ErrorKind::kUnsupported, "attributes: there is no kernel for activation '{}'", activation);
  }
  Call apply{.type = found->first, .inputs = {x}, .floating = call.floating};
  for (const char* name : {"alpha", "beta", "gamma"}) {
    const std::string long_name = std::string("activation_") + name;
    if (call.given(long_name)) apply.attributes.set(name, call.real(long_name, 0));
  }
  if (call.given("activation_axis")) {
    apply.attributes.set("axis", call.integer("activation_axis", -1));
  }
  if (const auto* value = call.attributes.find("activation_params")) {
    const auto* numbers = std::get_if<std::vector<double>>(value);
    const bool bounds = activation == "Clip";
    for (std::size_t i = 0; numbers != nullptr && i < std::min<std::size_t>(2, numbers->size());
         ++i) {
      const char* name = i == 0 ? (bounds ? "min" : "alpha") : (bounds ? "max" : "beta");
      apply.attributes.set(name, numbers->at(i));
    }
  }
  return found->second(apply)[0];
}

// X, W, perhaps a bias by channel, perhaps a tensor of the result's shape that is added.
Tensor fused_conv(const KernelTable& table, const Call& call) {
  Call conv = call;
  Tensor added;
  if (conv.inputs.size() > 2 && conv.inputs.back().dim() > 1) {
    added = conv.inputs.back();
    conv.inputs.pop_back();
  }
  const Tensor y = table.at("Conv")(conv)[0];
  return activated(table, call, added.defined() ? y + added : y);
}

// X, a bias, perhaps a residual that is added, perhaps the ratio.
Tensors bias_dropout(const KernelTable& table, const Call& call) {
  Call dropout = call;
  const Tensor sum = call.in(0) + call.in(1);
  dropout.inputs[0] = sum;
  Tensors results = table.at("Dropout")(dropout);
  const Tensor residual = call.given_at(2);
  if (residual.defined() && residual.sizes() == call.in(0).sizes()) {
    results[0] = results[0] + residual;
  }
  return results;
}

// From dy and the mask: the gradients of those of X, bias and residual that are wanted.
Tensors bias_dropout_gradient(const KernelTable& table, const Call& call) {
  Integers wanted = call.integers("wanted");
  if (wanted.empty()) wanted = {0, 1, 2};
  const Tensor masked = table.at("DropoutGrad")(call)[0];
  Tensors results;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    results.push_back(at::sum_to(wanted.at(i) == 2 ? call.in(0) : masked, call.shape(i)));
  }
  return results;
}

}  // namespace

void add_fused(KernelTable& table) {
  const KernelTable parts = table;
  table["FusedConv"] = single([parts](const Call& call) { return fused_conv(parts, call); });
  table["FusedGemm"] = single(
      [parts](const Call& call) { return activated(parts, call, parts.at("Gemm")(call)[0]); });
  table["FusedMatMulActivation"] = single(
      [parts](const Call& call) { return activated(parts, call, parts.at("MatMul")(call)[0]); });
  table["BiasDropout"] = [parts](const Call& call) { return bias_dropout(parts, call); };
  table["BiasDropoutGrad"] = [parts](const Call& call) {
    return bias_dropout_gradient(parts, call);
  };
}

}  // namespace emplace::exec
