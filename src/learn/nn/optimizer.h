// Gradient steps: plain, or Adam (Kingma, Ba 2015), with the gradient's norm clipped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learn/nn/optimizer_settings.h"
#include "learn/train/state.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

class Optimizer {
 public:
  explicit Optimizer(const OptimizerSettings& settings) : settings_(settings) {}

  // Against the gradients, which are beside the parameters, at `rate_factor` times the learning
  // rate; the norm before clipping.
  double step(const std::vector<torch::Tensor>& parameters, std::vector<torch::Tensor> gradients,
              double rate_factor = 1);

  // As it was before the first step.
  void restart();

  void save(StateWriter& state, const std::string& prefix) const;
  // To go on with parameters on `device`.
  void load(const StateReader& state, const std::string& prefix, torch::Device device);

 private:
  OptimizerSettings settings_;
  std::int64_t steps_ = 0;
  std::vector<torch::Tensor> mean_;
  std::vector<torch::Tensor> square_;
};

}  // namespace emplace::learn
