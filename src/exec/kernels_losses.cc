// Losses against labels. A part of a mean divides by `mean_count`, so that parts add up.
#include "base/error.h"

#include "exec/derive.h"
#include "exec/kernel.h"

namespace emplace::exec {
namespace {

// Log-probabilities [n, classes, ...], labels [n, ...], perhaps a weight for each class.
Tensor likelihood_loss(const Call& call, const Tensor& logarithms) {
  const Tensor& labels = call.in(1);
  Tensor counted = torch::ones_like(labels, torch::kBool);
  if (call.given("ignore_index")) counted = labels != call.integer("ignore_index", 0);
  const Tensor classes = at::where(counted, labels, torch::zeros_like(labels));
  const Tensor picked = logarithms.gather(1, classes.unsqueeze(1)).squeeze(1);
  Tensor weights = counted.to(torch::kDouble);
  if (call.has(2)) {
    weights = weights * call.in(2).index_select(0, classes.flatten()).reshape(labels.sizes());
  }
  const Tensor losses = -picked * weights;
  const std::string_view reduction = call.attributes.text("reduction", "mean");
  if (reduction == "none") return losses;
  if (reduction == "sum") return losses.sum().reshape(call.shape());
  const Tensor total = losses.sum().reshape(call.shape());
  if (call.given("mean_count")) return total / static_cast<double>(call.integer("mean_count", 1));
  return total / weights.sum();
}

Tensors cross_entropy(const Call& call) {
  const Tensor logarithms = call.in(0).log_softmax(1);
  return {likelihood_loss(call, logarithms), logarithms};
}

// From dy, labels, perhaps weights, and the log-probabilities; or from dy and all inputs.
// Log-probabilities are scores as good as those that they were made from.
Tensors cross_entropy_gradient(const Call& gradient) {
  Tensors inputs(gradient.inputs.begin() + 1, gradient.inputs.end());
  if (!gradient.in(1).is_floating_point()) {
    inputs.insert(inputs.begin(), gradient.inputs.back());
    inputs.pop_back();
  }
  const Tensor& dy = gradient.in(0);
  const Call call{
      .type = gradient.type,
      .attributes = gradient.attributes,
      .inputs = std::move(inputs),
      .outputs = {tensor_type({dy.sizes().begin(), dy.sizes().end()}, DType::kFloat64)}};
  return gradients_of(cross_entropy, call, {0}, gradient.inputs, {0});
}

}  // namespace

void add_losses(KernelTable& table) {
  table["SoftmaxCrossEntropyLoss"] = cross_entropy;
  table["SoftmaxCrossEntropyLossGrad"] = cross_entropy_gradient;
  table["NegativeLogLikelihoodLoss"] =
      single([](const Call& call) { return likelihood_loss(call, call.in(0)); });
}

}  // namespace emplace::exec
