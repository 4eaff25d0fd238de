// Placeto's network (Addanki et al., NeurIPS 2019): messages along a graph in both directions,
// three pools around the node that is looked at, and a choice for it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/csr.h"
#include "base/rng.h"

#include "learn/encoders/message_passing_settings.h"
#include "learn/encoders/neighbours.h"
#include "learn/nn/module.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

// Linear layers with ReLU between them, and after the last where that is asked for.
class FeedForward {
 public:
  FeedForward() = default;
  // `widths`: of the input, then of each layer's output.
  FeedForward(Parameters& parameters, const std::string& name,
              const std::vector<std::int64_t>& widths, bool relu_after, Rng& rng);
  // Of rows [rows, width].
  torch::Tensor operator()(torch::Tensor rows) const;

 private:
  std::vector<Linear> layers_;
  bool relu_after_ = false;
};

// For every node, which others reach it (ancestors), are reached from it (descendants), or neither
// (parallel). Meant for graphs without cycles, on which a node would be both. One byte for every
// pair of nodes and relation.
class Relations {
 public:
  enum Kind : std::uint8_t { kAncestors, kDescendants, kParallel };
  static constexpr std::size_t kKinds = 3;

  Relations(const Csr<std::uint32_t>& successors, torch::Device device);

  // [batch, nodes]: 1 for those that are so related to nodes[b]. `nodes` is int64 [batch].
  torch::Tensor of(Kind kind, const torch::Tensor& nodes) const;

 private:
  std::array<torch::Tensor, kKinds> related_;  // uint8 [nodes, nodes]
};

class MessagePassing {
 public:
  // Lists of one graph without cycles (learn/units/precedence.h).
  MessagePassing(Parameters& parameters, const Csr<std::uint32_t>& predecessors,
                 const Csr<std::uint32_t>& successors, std::int64_t features, std::int64_t choices,
                 const MessagePassingSettings& settings, Rng& rng);

  // With the same parameters for another graph.
  MessagePassing on(const Csr<std::uint32_t>& predecessors,
                    const Csr<std::uint32_t>& successors) const;

  // [batch, nodes, 2 features] from [batch, nodes, features].
  torch::Tensor encode(const torch::Tensor& features) const;
  // Logits [batch, choices] for node current[b] of features[b].
  torch::Tensor operator()(const torch::Tensor& features, const torch::Tensor& current) const;

 private:
  struct Direction {
    Neighbours neighbours;
    torch::Tensor heard;  // [nodes, 1, 1]: 1 where a node has neighbours
    FeedForward before;
    FeedForward after;
  };
  struct Pool {
    FeedForward before;
    FeedForward after;
  };

  Direction direction(Parameters& parameters, const std::string& name,
                      const Csr<std::uint32_t>& neighbours, std::int64_t width, Rng& rng) const;
  Direction direction(const Csr<std::uint32_t>& neighbours, FeedForward before, FeedForward after,
                      torch::Device device) const;
  torch::Tensor pass(const Direction& direction, const torch::Tensor& embedded) const;
  torch::Tensor pool(std::size_t kind, const torch::Tensor& encoded,
                     const torch::Tensor& current) const;

  MessagePassingSettings settings_;
  FeedForward embed_;
  Direction forward_;
  Direction backward_;
  Relations relations_;
  std::array<Pool, Relations::kKinds> pools_;
  FeedForward classify_;
};

}  // namespace emplace::learn
