// Sums and maxima over the neighbours of every node: linear in the number of edges, with gradients.
// On the CPU by loops over flat lists, elsewhere by libtorch's gather and scatter operations.
#pragma once

#include <cstdint>

#include "base/csr.h"

#include "learn/nn/torch.h"

namespace emplace::learn {

// Row i lists the nodes that node i hears of.
class Neighbours {
 public:
  // `weights`, beside the values of `lists`, may be empty: 1 each.
  Neighbours(const Csr<std::uint32_t>& lists, const std::vector<float>& weights,
             torch::Device device);

  std::int64_t nodes() const { return offsets_.size(0) - 1; }
  std::int64_t edges() const { return sources_.size(0); }

  // x is [nodes, width] or [batch, nodes, width]; so is the result. Rows without neighbours are 0.
  torch::Tensor sum(const torch::Tensor& x) const;
  // Without weights. The gradient goes to the first of equal maxima.
  torch::Tensor max(const torch::Tensor& x) const;

 private:
  torch::Tensor offsets_;  // int64 [nodes + 1]
  torch::Tensor sources_;  // int64 [edges]: whom the edge comes from, by target
  torch::Tensor targets_;  // int64 [edges]
  torch::Tensor weights_;  // [edges]
  // The same edges by source, for the gradient of sums.
  torch::Tensor back_offsets_;
  torch::Tensor back_targets_;
  torch::Tensor back_weights_;
};

}  // namespace emplace::learn
