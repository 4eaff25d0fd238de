// Sums and maxima over the neighbours of every node: linear in the number of edges, with gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.h"

#include "learn/nn/torch.h"

namespace emplace::learn {

// Row i lists the nodes that node i hears of.
class Neighbours {
 public:
  // `weights`, beside the values of `lists`, may be empty: 1 each.
  Neighbours(const Csr<std::uint32_t>& lists, const std::vector<float>& weights,
             torch::Device device);

  std::int64_t nodes() const { return heard_.offsets.size(0) - 1; }
  std::int64_t edges() const { return heard_.members.size(0); }

  // x is [nodes, ...]; so is the result. Rows without neighbours are 0.
  torch::Tensor sum(const torch::Tensor& x) const;
  // Without weights. The gradient goes to the first of equal maxima.
  torch::Tensor max(const torch::Tensor& x) const;

 private:
  // The edges of node i are offsets[i] .. offsets[i + 1].
  struct Bags {
    torch::Tensor offsets;  // int64 [nodes + 1]
    torch::Tensor members;  // int64 [edges]: the nodes at the other ends
    torch::Tensor weights;  // [edges]
  };
  static Bags bags(const Csr<std::uint32_t>& lists, const std::vector<float>& weights,
                   torch::Device device);

  Bags heard_;    // by the node that hears
  Bags telling_;  // by the node that is heard: for the gradient of sums
};

}  // namespace emplace::learn
