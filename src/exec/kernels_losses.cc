// Losses against labels. A part of a mean divides by `mean_count`, so that parts add up.
#include "base/error.h"

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
  Tensor weights = counted.to(logarithms.dtype());
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

// Of [n, classes], libtorch takes the loss at once.
Tensors cross_entropy(const Call& call) {
  const Tensor logarithms = call.in(0).log_softmax(1);
  const bool plain = logarithms.dim() == 2 && !call.has(2) && !call.given("mean_count") &&
                     call.attributes.text("reduction", "mean") == "mean";
  if (!plain) return {likelihood_loss(call, logarithms), logarithms};
  const std::int64_t ignored = call.integer("ignore_index", -100);
  const Tensor loss =
      std::get<0>(at::nll_loss_forward(logarithms, call.in(1), {}, at::Reduction::Mean, ignored));
  return {loss.reshape(call.shape()), logarithms};
}

// Labels, perhaps a weight for each class: the sum of what labels count in a mean.
Tensor weight_of_labels(const Call& call) {
  const Tensor& labels = call.in(0);
  Tensor counted = torch::ones_like(labels, torch::kBool);
  if (call.given("ignore_index")) counted = labels != call.integer("ignore_index", 0);
  Tensor weights = counted.to(call.floating.dtype());
  if (call.has(1)) {
    const Tensor classes = at::where(counted, labels, torch::zeros_like(labels));
    weights = weights * call.in(1).index_select(0, classes.flatten()).reshape(labels.sizes());
  }
  return weights.sum().reshape(call.shape());
}

// How much each label's loss counts for the gradient of the whole: [n, ...].
Tensor label_shares(const Call& call, const Tensor& dy, const Tensor& labels, const Tensor& classes,
                    const Tensor& weights) {
  Tensor shares = torch::ones(labels.sizes(), dy.options());
  if (call.given("ignore_index")) {
    shares = (labels != call.integer("ignore_index", 0)).to(dy.dtype());
  }
  if (weights.defined()) {
    shares = shares * weights.index_select(0, classes.flatten()).reshape(labels.sizes());
  }
  const std::string_view reduction = call.attributes.text("reduction", "mean");
  if (reduction != "mean") return shares * dy;
  if (call.given("mean_count")) {
    return shares * (dy / static_cast<double>(call.integer("mean_count", 1)));
  }
  return shares * (dy / shares.sum());
}

Tensor counted_classes(const Call& call, const Tensor& labels) {
  if (!call.given("ignore_index")) return labels;
  return labels.masked_fill(labels == call.integer("ignore_index", 0), 0);
}

// From dy, labels, perhaps weights, and the log-probabilities; or from dy, scores, labels, perhaps
// weights. Each label's share of: its probabilities, less one for its class.
Tensor cross_entropy_gradient(const Call& call) {
  const bool given = !call.in(1).is_floating_point();
  const Tensor& labels = call.in(given ? 1 : 2);
  const Tensor probabilities = given ? call.inputs.back().exp() : call.in(1).softmax(1);
  const std::size_t weights = given ? 2 : 3;
  const bool weighted = call.inputs.size() > 3;
  const Tensor classes = counted_classes(call, labels);
  const Tensor shares =
      label_shares(call, call.in(0), labels, classes, weighted ? call.in(weights) : Tensor())
          .unsqueeze(1);
  return (probabilities * shares).scatter_add_(1, classes.unsqueeze(1), -shares);
}

// From dy, labels, perhaps weights.
Tensor likelihood_gradient(const Call& call) {
  const Tensor& labels = call.in(1);
  const Tensor classes = counted_classes(call, labels);
  const Tensor shares =
      label_shares(call, call.in(0), labels, classes, call.has(2) ? call.in(2) : Tensor())
          .unsqueeze(1);
  return torch::zeros(call.shape(), call.in(0).options())
      .scatter_add_(1, classes.unsqueeze(1), -shares);
}

}  // namespace

void add_losses(KernelTable& table) {
  table["LossWeight"] = single(weight_of_labels);
  table["SoftmaxCrossEntropyLoss"] = cross_entropy;
  table["SoftmaxCrossEntropyLossGrad"] = single(cross_entropy_gradient);
  table["NegativeLogLikelihoodLoss"] =
      single([](const Call& call) { return likelihood_loss(call, call.in(0)); });
  table["NegativeLogLikelihoodLossGrad"] = single(likelihood_gradient);
}

}  // namespace emplace::exec
