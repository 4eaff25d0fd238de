#include "learn/encoders/deep_graph_infomax.h"

#include <limits>
#include <numeric>

#include "learn/nn/gradients.h"
#include "learn/nn/optimizer.h"

namespace emplace::learn {
namespace {

torch::Tensor random_order(std::int64_t size, torch::Device device, Rng& rng) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  rng.shuffle(order);
  return to_tensor(order, device);
}

// Binary cross-entropy: `real` should be positive, `corrupted` negative.
torch::Tensor cross_entropy_of(const torch::Tensor& real, const torch::Tensor& corrupted) {
  return (torch::softplus(-real).mean() + torch::softplus(corrupted).mean()) / 2;
}

std::vector<torch::Tensor> copies(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> result;
  for (const torch::Tensor& tensor : tensors) result.push_back(tensor.detach().clone());
  return result;
}

void restore(const std::vector<torch::Tensor>& saved, std::vector<torch::Tensor> into) {
  const torch::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < into.size(); ++i) into[i].copy_(saved[i]);
}

}  // namespace

Discriminator::Discriminator(Parameters& parameters, std::int64_t width, Rng& rng)
    : weight(parameters.glorot("discriminator.weight", width, width, rng)),
      bias(parameters.constant("discriminator.bias", {1}, 0)) {}

torch::Tensor Discriminator::operator()(const torch::Tensor& nodes,
                                        const torch::Tensor& summary) const {
  return torch::matmul(nodes, torch::matmul(weight, summary)) + bias;
}

torch::Tensor infomax_loss(const Discriminator& discriminator, const torch::Tensor& features,
                           const EncodeNodes& encode, Rng& rng) {
  const torch::Tensor order = random_order(features.size(0), features.device(), rng);
  const torch::Tensor nodes = encode(features);
  const torch::Tensor others = encode(features.index_select(0, order));
  const torch::Tensor summary = Discriminator::summary(nodes);
  return cross_entropy_of(discriminator(nodes, summary), discriminator(others, summary));
}

InfomaxReport deep_graph_infomax(Parameters& encoder, const torch::Tensor& features,
                                 const EncodeNodes& encode, const InfomaxSettings& settings,
                                 const std::function<bool()>& stop, Rng& rng) {
  InfomaxReport report;
  Parameters extra(encoder.device());
  const std::int64_t width = [&] {
    const torch::NoGradGuard no_gradients;
    return encode(features).size(1);
  }();
  const Discriminator discriminator(extra, width, rng);
  const std::vector<torch::Tensor> learned = encoder.tensors();
  std::vector<torch::Tensor> all = learned;
  for (const torch::Tensor& tensor : extra.tensors()) all.push_back(tensor);

  Optimizer optimizer({.learning_rate = settings.learning_rate});
  std::vector<torch::Tensor> best = copies(learned);
  double smallest = std::numeric_limits<double>::infinity();
  std::int64_t since_best = 0;
  while (report.iterations < settings.iterations && since_best < settings.patience && !stop()) {
    const torch::Tensor loss = infomax_loss(discriminator, features, encode, rng);
    const double value = loss.item<double>();
    if (report.iterations++ == 0) report.first_loss = value;
    ++since_best;
    if (value < smallest) {
      smallest = value;
      since_best = 0;
      best = copies(learned);
    }
    // Parameters of the encoder's owner that the encoder does not use have no gradient.
    optimizer.step(all, gradient_for(loss, all));
  }
  if (report.iterations > 0) report.best_loss = smallest;
  restore(best, learned);
  return report;
}

}  // namespace emplace::learn
