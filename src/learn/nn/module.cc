#include "learn/nn/module.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

constexpr float kForbidden = -1e9F;
constexpr double kLargestBelowOne = 0x1.fffffep-1;

std::int64_t volume(const std::vector<std::int64_t>& shape) {
  std::int64_t result = 1;
  for (const std::int64_t size : shape) result *= size;
  return result;
}

template <class Draw>
torch::Tensor filled(const std::vector<std::int64_t>& shape, const Draw& draw) {
  torch::Tensor result = torch::empty(shape, torch::kFloat32);
  float* values = result.data_ptr<float>();
  const std::int64_t count = volume(shape);
  constexpr std::int64_t kBetweenLooks = 1 << 20;  // at the clock: ten milliseconds
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % kBetweenLooks == 0) check_time();
    values[i] = static_cast<float>(draw());
  }
  return result;
}

}  // namespace

torch::Tensor Parameters::glorot(const std::string& name, std::int64_t in, std::int64_t out,
                                 Rng& rng) {
  return uniform(name, {in, out}, std::sqrt(6.0 / static_cast<double>(in + out)), rng);
}

torch::Tensor Parameters::uniform(const std::string& name, std::vector<std::int64_t> shape,
                                  double bound, Rng& rng) {
  return add(name, filled(shape, [&] { return (2 * rng.uniform() - 1) * bound; }));
}

torch::Tensor Parameters::constant(const std::string& name, std::vector<std::int64_t> shape,
                                   double value) {
  return add(name, torch::full(shape, value, torch::kFloat32));
}

std::vector<torch::Tensor> Parameters::tensors() const {
  std::vector<torch::Tensor> result;
  for (const auto& [name, tensor] : named_) result.push_back(tensor);
  return result;
}

std::vector<torch::Tensor> Parameters::values() const {
  std::vector<torch::Tensor> result;
  for (const auto& [name, tensor] : named_) result.push_back(tensor.detach().clone());
  return result;
}

void Parameters::assign(const std::vector<torch::Tensor>& values) {
  EMPLACE_CHECK(values.size() == named_.size());
  const torch::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < values.size(); ++i) named_[i].second.copy_(values[i]);
}

torch::Tensor Parameters::add(const std::string& name, torch::Tensor values) {
  torch::Tensor tensor = values.to(device_).requires_grad_(true);
  named_.emplace_back(name, tensor);
  return tensor;
}

Linear::Linear(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out,
               Rng& rng, bool with_bias)
    : weight(parameters.glorot(name + ".weight", in, out, rng)) {
  if (with_bias) bias = parameters.constant(name + ".bias", {out}, 0);
}

torch::Tensor Linear::operator()(const torch::Tensor& x) const {
  if (bias.defined() && x.dim() == 2) return torch::addmm(bias, x, weight);
  const torch::Tensor product = torch::matmul(x, weight);
  return bias.defined() ? product + bias : product;
}

torch::Tensor to_tensor(const Matrix& matrix, torch::Device device) {
  torch::Tensor result = torch::empty({matrix.rows, matrix.columns}, torch::kFloat32);
  std::copy(matrix.values.begin(), matrix.values.end(), result.data_ptr<float>());
  return result.to(device);
}

torch::Tensor to_tensor(const std::vector<std::int64_t>& values, torch::Device device) {
  torch::Tensor result = torch::empty({static_cast<std::int64_t>(values.size())}, torch::kInt64);
  std::copy(values.begin(), values.end(), result.data_ptr<std::int64_t>());
  return result.to(device);
}

torch::Tensor uniforms(std::vector<std::int64_t> shape, Rng& rng) {
  // As a float the largest would be 1.
  return filled(shape, [&] { return std::min(rng.uniform(), kLargestBelowOne); });
}

torch::Tensor normals(std::vector<std::int64_t> shape, Rng& rng) {
  return filled(shape, [&] {  // Box and Muller 1958
    const double radius = std::sqrt(-2 * std::log1p(-rng.uniform()));
    return radius * std::cos(2 * std::numbers::pi * rng.uniform());
  });
}

torch::Tensor device_mask(std::span<const std::uint8_t> allowed, std::int64_t devices,
                          torch::Device device) {
  torch::Tensor result =
      torch::empty({static_cast<std::int64_t>(allowed.size()) / devices, devices}, torch::kFloat32);
  float* values = result.data_ptr<float>();
  for (std::size_t i = 0; i < allowed.size(); ++i) values[i] = allowed[i] != 0 ? 0 : kForbidden;
  return result.to(device);
}

torch::Tensor device_mask(const UnitGraph& units, torch::Device device) {
  return device_mask(units.allowed_mask(), units.num_devices(), device);
}

torch::Tensor draw(const torch::Tensor& log_probs, const torch::Tensor& uniform) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor cumulative = log_probs.exp().cumsum(-1);
  const torch::Tensor total = cumulative.slice(-1, -1);
  const torch::Tensor at = uniform.to(log_probs.device()).unsqueeze(-1) * total;
  const torch::Tensor beyond = (cumulative <= at).sum(-1);
  // Rounding may leave `at` equal to the total: then the last class that can occur.
  const torch::Tensor possible = (log_probs > 0.5 * kForbidden).to(torch::kInt64);
  const torch::Tensor last = (possible.cumsum(-1) * possible).argmax(-1);
  return torch::minimum(beyond, last);
}

torch::Tensor log_prob_of(const torch::Tensor& log_probs, const torch::Tensor& actions) {
  return log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1);
}

torch::Tensor mean_entropy(const torch::Tensor& log_probs) {
  return -(log_probs.exp() * log_probs).sum(-1).mean();
}

}  // namespace emplace::learn
