// Trades time for memory: a part of a network whose intermediate results are not kept for the
// gradient but computed a second time (Chen et al. 2016).
#pragma once

#include <functional>
#include <vector>

#include "learn/nn/torch.h"

namespace emplace::learn {

using TensorFunction =
    std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>& inputs)>;

// `function(inputs)`, where every result depends on `inputs` and `parameters` alone, with the
// gradients for both. What else `function` refers to must live as long as the results' gradients
// may be asked for. No double gradients.
std::vector<torch::Tensor> recomputed(const std::vector<torch::Tensor>& inputs,
                                      const std::vector<torch::Tensor>& parameters,
                                      const TensorFunction& function);

}  // namespace emplace::learn
