// Scores of pairs by a network of one hidden layer whose input is a sum: what units add to it and
// what devices add, every unit with every device.
#pragma once

#include "learn/nn/torch.h"

namespace emplace::learn {

// v' relu(u_rc + q_rd) as [rows, count, devices] from u [rows, count, width], q [rows, devices,
// width], v [width]. Nothing of size rows * count * devices * width is kept on the CPU: the
// backward pass computes it again.
torch::Tensor pair_scores(const torch::Tensor& u, const torch::Tensor& q, const torch::Tensor& v);
// The same in libtorch's own operations on every device.
torch::Tensor pair_scores_plainly(const torch::Tensor& u, const torch::Tensor& q,
                                  const torch::Tensor& v);

}  // namespace emplace::learn
