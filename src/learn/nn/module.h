// A set of named parameters: what a network is made of, without libtorch's own module classes,
// whose initial values depend on a global generator.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

#include "learn/features/features.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

// Parameters are made from an Rng, so that a seed fixes them on every machine and device.
class Parameters {
 public:
  explicit Parameters(torch::Device device = torch::kCPU) : device_(device) {}

  // Glorot-uniform for matrices [in, out]: U(-a, a), a = sqrt(6 / (in + out)).
  torch::Tensor glorot(const std::string& name, std::int64_t in, std::int64_t out, Rng& rng);
  torch::Tensor uniform(const std::string& name, std::vector<std::int64_t> shape, double bound,
                        Rng& rng);
  torch::Tensor constant(const std::string& name, std::vector<std::int64_t> shape, double value);

  const std::vector<std::pair<std::string, torch::Tensor>>& named() const { return named_; }
  std::vector<torch::Tensor> tensors() const;
  // Copies of the values, and back: in the same order, of the same shapes.
  std::vector<torch::Tensor> values() const;
  void assign(const std::vector<torch::Tensor>& values);
  torch::Device device() const { return device_; }

 private:
  torch::Tensor add(const std::string& name, torch::Tensor values);

  torch::Device device_;
  std::vector<std::pair<std::string, torch::Tensor>> named_;
};

// y = x W + b; W is [in, out].
struct Linear {
  Linear() = default;
  Linear(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out,
         Rng& rng, bool with_bias = true);
  torch::Tensor operator()(const torch::Tensor& x) const;

  torch::Tensor weight;
  torch::Tensor bias;  // undefined without one
};

// [rows, columns] on the device.
torch::Tensor to_tensor(const Matrix& matrix, torch::Device device);
torch::Tensor to_tensor(const std::vector<std::int64_t>& values, torch::Device device);
// Uniform in [0, 1), on the CPU, float.
torch::Tensor uniforms(std::vector<std::int64_t> shape, Rng& rng);
// Standard normal, likewise.
torch::Tensor normals(std::vector<std::int64_t> shape, Rng& rng);

// [units, devices]: 0 where the unit may be there, a large negative number elsewhere. Added to
// logits. `allowed` is [unit * devices + device].
torch::Tensor device_mask(std::span<const std::uint8_t> allowed, std::int64_t devices,
                          torch::Device device);
torch::Tensor device_mask(const UnitGraph& units, torch::Device device);

// Draws from each distribution of `log_probs` [..., classes] by inverting its cumulative sum at
// `uniform` [...]; never a class of probability 0. int64 [...].
torch::Tensor draw(const torch::Tensor& log_probs, const torch::Tensor& uniform);
// The log-probability of each action: [...] from [..., classes] and int64 [...].
torch::Tensor log_prob_of(const torch::Tensor& log_probs, const torch::Tensor& actions);
// Mean entropy over all distributions, in nats.
torch::Tensor mean_entropy(const torch::Tensor& log_probs);

}  // namespace emplace::learn
