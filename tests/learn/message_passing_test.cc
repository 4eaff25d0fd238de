#include "learn/encoders/message_passing.h"

#include <map>

#include <gtest/gtest.h>

namespace emplace::learn {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// 0 -> 1 -> 3, 0 -> 2 -> 3, and 4 by itself.
const Pairs kDiamond{{0, 1}, {0, 2}, {1, 3}, {2, 3}};
constexpr std::int64_t kNodes = 5;
constexpr std::int64_t kWidth = 3;
constexpr std::int64_t kChoices = 2;

Csr<std::uint32_t> successors(const Pairs& edges, std::size_t nodes = kNodes) {
  return Csr<std::uint32_t>::from_pairs(nodes, edges);
}
Csr<std::uint32_t> predecessors(const Pairs& edges, std::size_t nodes = kNodes) {
  Pairs turned;
  for (const auto& [from, to] : edges) turned.emplace_back(to, from);
  return Csr<std::uint32_t>::from_pairs(nodes, turned);
}

// [node, from]: 1 where `node` hears of `from`.
torch::Tensor dense_messages(const Csr<std::uint32_t>& lists) {
  const auto nodes = static_cast<std::int64_t>(lists.size());
  torch::Tensor matrix = torch::zeros({nodes, nodes});
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (const std::uint32_t other : lists[static_cast<std::size_t>(node)]) {
      matrix[node][static_cast<std::int64_t>(other)] = 1;
    }
  }
  return matrix;
}

// The network again, on one graph at a time, from dense matrices and parameters by name.
class DenseNetwork {
 public:
  DenseNetwork(const Parameters& parameters, const Pairs& edges,
               Aggregate aggregate = Aggregate::kSum)
      : from_predecessors_(scaled(dense_messages(predecessors(edges)), aggregate)),
        from_successors_(scaled(dense_messages(successors(edges)), aggregate)) {
    for (const auto& [name, tensor] : parameters.named()) values_[name] = tensor;
  }

  torch::Tensor encode(const torch::Tensor& x, int rounds) const {
    const torch::Tensor z = layers("embed", 3, x);
    return torch::cat({pass("forward", from_predecessors_, z, rounds),
                       pass("backward", from_successors_, z, rounds)},
                      1);
  }

  torch::Tensor pool(const std::string& name, const torch::Tensor& encoded,
                     const std::vector<std::int64_t>& members) const {
    torch::Tensor sum = torch::zeros({1, encoded.size(1)});
    for (const std::int64_t member : members) {
      sum = sum + torch::relu(layers(name + ".before", 2, encoded[member].unsqueeze(0)));
    }
    return torch::relu(layers(name + ".after", 2, sum));
  }

  torch::Tensor layers(const std::string& name, int count, torch::Tensor x) const {
    for (int i = 0; i < count; ++i) {
      if (i > 0) x = torch::relu(x);
      const std::string layer = name + "." + std::to_string(i);
      x = torch::matmul(x, values_.at(layer + ".weight")) + values_.at(layer + ".bias");
    }
    return x;
  }

 private:
  static torch::Tensor scaled(const torch::Tensor& adjacency, Aggregate aggregate) {
    const torch::Tensor degrees = adjacency.sum(1, true);
    if (aggregate == Aggregate::kMean) return adjacency / degrees.clamp_min(1);
    if (aggregate == Aggregate::kScaledSum) return adjacency * (degrees > 0).sum() / degrees.sum();
    return adjacency;
  }

  torch::Tensor pass(const std::string& name, const torch::Tensor& adjacency,
                     const torch::Tensor& z, int rounds) const {
    torch::Tensor x = z;
    for (int round = 0; round < rounds; ++round) {
      const torch::Tensor messages = torch::relu(layers(name + ".before", 2, x));
      const torch::Tensor news =
          torch::relu(layers(name + ".after", 2, torch::matmul(adjacency, messages)));
      torch::Tensor next = z.clone();
      for (std::int64_t node = 0; node < kNodes; ++node) {
        if (adjacency[node].sum().item<float>() > 0) next[node] += news[node];
      }
      x = next;
    }
    return x;
  }

  std::map<std::string, torch::Tensor> values_;
  torch::Tensor from_predecessors_;
  torch::Tensor from_successors_;
};

struct Network {
  explicit Network(const MessagePassingSettings& settings = {}, const Pairs& edges = kDiamond,
                   std::uint64_t seed = 7)
      : rng(seed),
        net(parameters, predecessors(edges), successors(edges), kWidth, kChoices, settings, rng) {
    // Biases count too.
    const torch::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : parameters.named()) {
      if (tensor.dim() == 1) torch::Tensor(tensor).copy_(0.3 * normals({tensor.size(0)}, rng));
    }
  }
  Rng rng;
  Parameters parameters;
  MessagePassing net;
};

TEST(MessagePassing, encodes_as_the_dense_network_does) {
  for (const Aggregate aggregate : {Aggregate::kSum, Aggregate::kScaledSum, Aggregate::kMean}) {
    for (const std::int64_t rounds : {0, 1, 3, 8}) {
      Network network({.rounds = rounds, .aggregate = aggregate});
      const torch::Tensor x = normals({2, kNodes, kWidth}, network.rng);
      const torch::Tensor encoded = network.net.encode(x);
      const DenseNetwork reference(network.parameters, kDiamond, aggregate);
      for (std::int64_t b = 0; b < 2; ++b) {
        const torch::Tensor expected = reference.encode(x[b], static_cast<int>(rounds));
        EXPECT_TRUE(torch::allclose(encoded[b], expected, 1e-4, 1e-5)) << rounds;
      }
    }
  }
}

TEST(MessagePassing, pools_relatives_of_the_current_node) {
  Network network({.rounds = 2, .aggregate = Aggregate::kSum});
  const torch::Tensor x = normals({3, kNodes, kWidth}, network.rng);
  const torch::Tensor current = torch::tensor({1, 3, 4}, torch::kInt64);
  const torch::Tensor logits = network.net(x, current);
  ASSERT_EQ(logits.sizes(), (std::vector<std::int64_t>{3, kChoices}));
  const DenseNetwork reference(network.parameters, kDiamond);
  const std::vector<std::vector<std::vector<std::int64_t>>> members{
      {{0}, {3}, {2, 4}}, {{0, 1, 2}, {}, {4}}, {{}, {}, {0, 1, 2, 3}}};
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto& sets = members[static_cast<std::size_t>(b)];
    const torch::Tensor encoded = reference.encode(x[b], 2);
    const torch::Tensor known = torch::cat({encoded[current[b].item<std::int64_t>()].unsqueeze(0),
                                            reference.pool("ancestors", encoded, sets[0]),
                                            reference.pool("descendants", encoded, sets[1]),
                                            reference.pool("parallel", encoded, sets[2])},
                                           1);
    EXPECT_EQ(known.size(1), 8 * kWidth);
    const torch::Tensor expected = reference.layers("classify", 3, known)[0];
    EXPECT_TRUE(torch::allclose(logits[b], expected, 1e-4, 1e-5)) << b;
  }
}

TEST(MessagePassing, nodes_that_share_a_cycle_are_ancestors_and_descendants) {
  // 0 <-> 1 -> 2, and 3.
  const Relations relations(successors({{0, 1}, {1, 0}, {1, 2}}, 4), torch::kCPU);
  const torch::Tensor all = torch::arange(4);
  const auto expect = [&](Relations::Kind kind, const std::vector<std::vector<float>>& rows) {
    const torch::Tensor related = relations.of(kind, all);
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 4; ++j) {
        EXPECT_EQ(related[i][j].item<float>(),
                  rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)])
            << kind << " " << i << " " << j;
      }
    }
  };
  expect(Relations::kAncestors, {{0, 1, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}});
  expect(Relations::kDescendants, {{0, 1, 1, 0}, {1, 0, 1, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}});
  expect(Relations::kParallel, {{0, 0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1}, {1, 1, 1, 0}});
}

TEST(MessagePassing, far_nodes_matter_only_with_enough_rounds) {
  const Pairs chain{{0, 1}, {1, 2}, {2, 3}, {3, 4}};
  for (const std::int64_t rounds : {2, 3, 4}) {
    float change = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {  // ReLU may stop a message
      Network network({.rounds = rounds, .pools = false}, chain, seed);
      const torch::Tensor x = normals({1, kNodes, kWidth}, network.rng);
      torch::Tensor other = x.clone();
      other[0][0] += 10;
      change += (network.net.encode(other) - network.net.encode(x))[0][4].abs().sum().item<float>();
    }
    EXPECT_EQ(change > 0, rounds == 4) << rounds;
  }
}

TEST(MessagePassing, bounds_logits_where_asked) {
  Network network({.rounds = 2, .logit_bound = 0.5});
  const torch::Tensor x = 100 * normals({4, kNodes, kWidth}, network.rng);
  const torch::Tensor logits = network.net(x, torch::zeros({4}, torch::kInt64));
  EXPECT_LE(logits.abs().max().item<float>(), 0.5F);
}

}  // namespace
}  // namespace emplace::learn
