#include "learn/nn/gradients.h"

namespace emplace::learn {

std::vector<torch::Tensor> gradient_for(const torch::Tensor& loss,
                                        const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> result =
      torch::autograd::grad({loss}, parameters, {}, {}, false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!result[i].defined()) result[i] = torch::zeros_like(parameters[i]);
  }
  return result;
}

}  // namespace emplace::learn
