// Gradients of a loss.
#pragma once

#include <vector>

#include "learn/nn/torch.h"

namespace emplace::learn {

// By parameter; zeros where the loss does not depend on it.
std::vector<torch::Tensor> gradient_for(const torch::Tensor& loss,
                                        const std::vector<torch::Tensor>& parameters);

}  // namespace emplace::learn
