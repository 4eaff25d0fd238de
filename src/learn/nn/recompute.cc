#include "learn/nn/recompute.h"

namespace emplace::learn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What libtorch's context can hold of ours.
struct Held final : torch::CustomClassHolder {
  TensorFunction function;
  variable_list parameters;
};

// The gradients of `results`, given those for them, for those of `wanted` that have any.
variable_list gradients_of(const variable_list& results, const variable_list& given,
                           const variable_list& wanted) {
  variable_list from, with, variables;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad()) continue;
    from.push_back(results[i]);
    with.push_back(given[i]);
  }
  std::vector<std::size_t> index;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].requires_grad()) continue;
    variables.push_back(wanted[i]);
    index.push_back(i);
  }
  variable_list result(wanted.size());
  if (from.empty() || variables.empty()) return result;
  const variable_list found = torch::autograd::grad(from, variables, with, {}, false, true);
  for (std::size_t i = 0; i < index.size(); ++i) result[index[i]] = found[i];
  return result;
}

class Recomputed final : public torch::autograd::Function<Recomputed> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList inputs,
                               at::TensorList /*parameters*/,
                               const c10::intrusive_ptr<Held>& held) {
    context->save_for_backward(inputs.vec());
    context->saved_data["held"] = c10::IValue::make_capsule(held);
    return held->function(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& given) {
    const auto capsule = context->saved_data["held"].toCapsule();
    const auto* held = static_cast<const Held*>(capsule.get());
    const torch::AutoGradMode with_gradients(true);
    variable_list wanted;
    for (const torch::Tensor& input : context->get_saved_variables()) {
      wanted.push_back(input.detach().requires_grad_(input.requires_grad()));
    }
    const variable_list results = held->function(wanted);
    wanted.insert(wanted.end(), held->parameters.begin(), held->parameters.end());
    variable_list result = gradients_of(results, given, wanted);
    result.emplace_back();  // `held` has none
    return result;
  }
};

}  // namespace

std::vector<torch::Tensor> recomputed(const std::vector<torch::Tensor>& inputs,
                                      const std::vector<torch::Tensor>& parameters,
                                      const TensorFunction& function) {
  auto held = c10::make_intrusive<Held>();
  held->function = function;
  held->parameters = parameters;
  return Recomputed::apply(at::TensorList(inputs), at::TensorList(parameters), held);
}

}  // namespace emplace::learn
