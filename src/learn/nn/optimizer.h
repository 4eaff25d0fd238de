// Gradient steps by libtorch's optimizers: plain, or Adam (Kingma, Ba 2015), with the gradient's
// norm clipped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learn/nn/module.h"
#include "learn/nn/optimizer_settings.h"
#include "learn/nn/torch.h"
#include "learn/train/state.h"

namespace torch::optim {
class Optimizer;
}

namespace emplace::learn {

class Optimizer {
 public:
  explicit Optimizer(const OptimizerSettings& settings);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Against the gradients, which are beside the parameters and may be overwritten, at `rate_factor`
  // times the learning rate; the norm before clipping. Nothing is done where that is not finite.
  // The parameters are the same from step to step.
  double step(const Parameters& parameters, const std::vector<torch::Tensor>& gradients,
              double rate_factor = 1);
  // Of parameters without names: none is in the settings' part.
  double step(const std::vector<torch::Tensor>& parameters,
              const std::vector<torch::Tensor>& gradients, double rate_factor = 1);

  // Of a step, the clipping alone, which needs the gradients of all parameters: the norm before.
  static double clip(const OptimizerSettings& settings, const Parameters& parameters,
                     std::vector<torch::Tensor>& gradients);

  // As it was before the first step, perhaps with other parameters.
  void restart();

  void save(StateWriter& state, const std::string& prefix) const;
  // To go on with parameters on `device`.
  void load(const StateReader& state, const std::string& prefix, torch::Device device);

 private:
  // Adam's moving averages, by parameter.
  struct Moments {
    std::vector<torch::Tensor> mean, square;
  };
  Moments moments() const;
  double step(const std::vector<torch::Tensor>& parameters, const std::vector<bool>& in_part,
              const std::vector<torch::Tensor>& gradients, double rate_factor);
  void begin(const std::vector<torch::Tensor>& parameters, const std::vector<bool>& in_part);
  void restore();
  // Of the learning rate at first.
  double rate_share() const;

  OptimizerSettings settings_;
  std::int64_t steps_ = 0;
  std::vector<torch::Tensor> parameters_;              // what steps_of_ is for
  std::vector<torch::Tensor> others_, part_;           // the same, apart; perhaps one is empty
  std::unique_ptr<torch::optim::Optimizer> steps_of_;  // from the first step on
  // Until then, what was loaded, and from where.
  Moments loaded_;
  std::string loaded_from_;
};

}  // namespace emplace::learn
