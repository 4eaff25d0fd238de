// A linear layer of few inputs and outputs over very many rows, perhaps with ReLU: what networks
// that pass messages spend their time on. General matrix products are slow at ten columns, so on
// the CPU this is a loop of its own; elsewhere plain operations.
#pragma once

#include "learn/nn/module.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

// [rows, out] from [rows, in]. A row's result does not depend on what other rows there are.
torch::Tensor narrow_layer(const Linear& layer, const torch::Tensor& rows, bool relu);

}  // namespace emplace::learn
