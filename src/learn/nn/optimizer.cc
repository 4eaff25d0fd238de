#include "learn/nn/optimizer.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "learn/train/state.h"
#include "learn/nn/torch.h"

namespace emplace::learn {
namespace {

constexpr double kMeanDecay = 0.9;
constexpr double kSquareDecay = 0.999;
constexpr double kSmallest = 1e-8;

double norm_of(const std::vector<at::Tensor>& gradients) {
  double squares = 0;
  for (const at::Tensor& gradient : gradients) {
    const double norm = gradient.norm().item<double>();
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

}  // namespace

double Optimizer::step(const std::vector<at::Tensor>& parameters, std::vector<at::Tensor> gradients,
                       double rate_factor) {
  const torch::NoGradGuard no_gradients;
  const double norm = norm_of(gradients);
  if (!std::isfinite(norm)) return norm;  // a step along it would destroy the policy
  if (settings_.clip_norm > 0 && norm > settings_.clip_norm) {
    for (at::Tensor& gradient : gradients) gradient.mul_(settings_.clip_norm / norm);
  }
  double rate = rate_factor * settings_.learning_rate;
  if (settings_.decay_steps > 0) {
    const double done =
        std::min(1.0, static_cast<double>(steps_) / static_cast<double>(settings_.decay_steps));
    rate *= 1 + done * (settings_.final_share - 1);
  }
  ++steps_;
  if (!settings_.adam) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor parameter = parameters[i];
      parameter.sub_(gradients[i], rate);
    }
    return norm;
  }
  if (mean_.empty()) {
    for (const at::Tensor& parameter : parameters) {
      mean_.push_back(torch::zeros_like(parameter).detach());
      square_.push_back(torch::zeros_like(parameter).detach());
    }
  }
  const double mean_share = 1 - std::pow(kMeanDecay, static_cast<double>(steps_));
  const double square_share = 1 - std::pow(kSquareDecay, static_cast<double>(steps_));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor parameter = parameters[i];
    mean_[i].mul_(kMeanDecay).add_(gradients[i], 1 - kMeanDecay);
    square_[i].mul_(kSquareDecay).addcmul_(gradients[i], gradients[i], 1 - kSquareDecay);
    const at::Tensor deviation = square_[i].sqrt().div_(std::sqrt(square_share)).add_(kSmallest);
    parameter.addcdiv_(mean_[i], deviation, -rate / mean_share);
  }
  return norm;
}

void Optimizer::restart() {
  steps_ = 0;
  mean_.clear();
  square_.clear();
}

void Optimizer::save(StateWriter& state, const std::string& prefix) const {
  state.put(prefix + ".steps", steps_);
  state.put(prefix + ".count", static_cast<std::int64_t>(mean_.size()));
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    state.put(fmt::format("{}.mean.{}", prefix, i), mean_[i]);
    state.put(fmt::format("{}.square.{}", prefix, i), square_[i]);
  }
}

void Optimizer::load(const StateReader& state, const std::string& prefix, c10::Device device) {
  steps_ = state.integer(prefix + ".steps");
  const auto count = static_cast<std::size_t>(state.integer(prefix + ".count"));
  mean_.resize(count);
  square_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    mean_[i] = state.tensor(fmt::format("{}.mean.{}", prefix, i)).to(device);
    square_[i] = state.tensor(fmt::format("{}.square.{}", prefix, i)).to(device);
  }
}

}  // namespace emplace::learn
