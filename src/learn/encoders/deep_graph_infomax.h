// Teaches a graph encoder without labels (Velickovic et al., ICLR 2019): a bilinear discriminator
// tells the nodes of the graph from those of a corrupted one, whose features are the same rows on
// other nodes, by a summary of the whole graph; encoder and discriminator learn to be right.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/rng.h"

#include "learn/nn/module.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

// What tells nodes of the graph from others: sigmoid(h' W s + b), where s is the summary.
struct Discriminator {
  Discriminator(Parameters& parameters, std::int64_t width, Rng& rng);
  // [width] from [nodes, width].
  static torch::Tensor summary(const torch::Tensor& nodes) { return nodes.mean(0).sigmoid(); }
  // [nodes], before the sigmoid.
  torch::Tensor operator()(const torch::Tensor& nodes, const torch::Tensor& summary) const;

  torch::Tensor weight;
  torch::Tensor bias;
};

// Vectors [nodes, width] from features [nodes, any].
using EncodeNodes = std::function<torch::Tensor(const torch::Tensor&)>;

// How badly nodes are told from those of one corrupted graph: log 2 where nothing is known.
torch::Tensor infomax_loss(const Discriminator& discriminator, const torch::Tensor& features,
                           const EncodeNodes& encode, Rng& rng);

struct InfomaxSettings {
  std::int64_t iterations = 1000;  // at most
  std::int64_t patience = 20;      // ends after so many that were no better than the best
  double learning_rate = 1e-3;
};

struct InfomaxReport {
  std::int64_t iterations = 0;
  double first_loss = 0;
  double best_loss = 0;
};

// `encode` goes by way of `encoder`, which ends at the values that had the smallest loss. `stop` is
// asked before each iteration.
InfomaxReport deep_graph_infomax(Parameters& encoder, const torch::Tensor& features,
                                 const EncodeNodes& encode, const InfomaxSettings& settings,
                                 const std::function<bool()>& stop, Rng& rng);

}  // namespace emplace::learn
