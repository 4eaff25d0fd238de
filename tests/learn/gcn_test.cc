#include "learn/encoders/gcn.h"

#include <gtest/gtest.h>

#include "learn/encoders/deep_graph_infomax.h"
#include "learn/nn/recompute.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

// A chain of ops, with a shortcut from the first to the last.
std::shared_ptr<const Problem> loop_of(int ops) {
  TimedGraph graph;
  const TensorId first = graph.op("op0", 1, {});
  TensorId last = first;
  for (int i = 1; i + 1 < ops; ++i) last = graph.op("op" + std::to_string(i), 1, {last});
  graph.op("end", 1, {last, first});
  return compile_timed(graph.build(), gpu_cluster(2));
}

torch::Tensor dense_adjacency(const UnitGraph& units) {
  const auto size = static_cast<std::int64_t>(units.size());
  torch::Tensor adjacency = torch::eye(size);
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    for (const UnitId other : units.predecessors(unit)) {
      adjacency[unit][other] = 1;
      adjacency[other][unit] = 1;
    }
  }
  const torch::Tensor scale = adjacency.sum(1).rsqrt();
  return scale.unsqueeze(1) * adjacency * scale.unsqueeze(0);
}

TEST(Gcn, equals_dense_algebra) {
  const auto problem = loop_of(5);
  const UnitGraph units = group_by_colocation(*problem);
  ASSERT_EQ(units.size(), 5U);
  const torch::Tensor mixing = dense_adjacency(units);
  EXPECT_NEAR(mixing[0][0].item<double>(), 1.0 / 3, 1e-6);  // two neighbours and itself

  Rng rng(1);
  Parameters parameters;
  const Gcn encoder(parameters, "gcn", 4, {.layers = 2, .width = 3}, rng);
  const torch::Tensor x = normals({5, 4}, rng);
  torch::Tensor expected = x;
  const std::vector<torch::Tensor> all = parameters.tensors();
  ASSERT_EQ(all.size(), 6U);
  for (std::size_t i = 0; i < all.size(); i += 3) {
    const torch::Tensor linear = mixing.matmul(expected).matmul(all[i]) + all[i + 1];
    expected = torch::where(linear > 0, linear, all[i + 2] * linear);
  }
  const Neighbours adjacency = normalized_adjacency(units, torch::kCPU);
  EXPECT_TRUE(torch::allclose(encoder(adjacency, x), expected, 1e-5, 1e-6));
  EXPECT_TRUE(
      torch::allclose(encoder.from_mixed(adjacency, adjacency.sum(x)), expected, 1e-5, 1e-6));

  const auto gradient = torch::autograd::grad({encoder(adjacency, x).square().sum()}, all);
  const auto dense = torch::autograd::grad({expected.square().sum()}, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(torch::allclose(gradient[i], dense[i], 1e-4, 1e-5)) << i;
  }
}

// Features that depend on the place in the graph: its two halves differ.
torch::Tensor halves(std::int64_t nodes, Rng& rng) {
  torch::Tensor x = 0.1 * normals({nodes, 4}, rng);
  x.narrow(0, 0, nodes / 2).select(1, 0) += 1;
  x.narrow(0, nodes / 2, nodes - nodes / 2).select(1, 1) += 1;
  return x;
}

TEST(DeepGraphInfomax, learns_to_tell_nodes_from_corrupted_ones) {
  const auto problem = loop_of(40);
  const UnitGraph units = group_by_colocation(*problem);
  const Neighbours adjacency = normalized_adjacency(units, torch::kCPU);
  Rng rng(2);
  Parameters parameters;
  const Gcn encoder(parameters, "gcn", 4, {.layers = 2, .width = 16}, rng);
  const torch::Tensor x = halves(40, rng);
  const auto encode = [&](const torch::Tensor& features) { return encoder(adjacency, features); };
  const torch::Tensor before = parameters.tensors()[0].detach().clone();
  const InfomaxReport report = deep_graph_infomax(
      parameters, x, encode, {.iterations = 1000, .learning_rate = 5e-3}, [] { return false; },
      rng);
  EXPECT_GT(report.iterations, 20);
  EXPECT_NEAR(report.first_loss, 0.69, 0.3);
  EXPECT_LT(report.best_loss, 0.35);
  EXPECT_FALSE(torch::equal(before, parameters.tensors()[0]));
}

TEST(DeepGraphInfomax, stops_when_told_and_changes_nothing_without_iterations) {
  const auto problem = loop_of(6);
  const Neighbours adjacency = normalized_adjacency(group_by_colocation(*problem), torch::kCPU);
  Rng rng(3);
  Parameters parameters;
  const Gcn encoder(parameters, "gcn", 4, {.layers = 1, .width = 4}, rng);
  const torch::Tensor x = normals({6, 4}, rng);
  const auto encode = [&](const torch::Tensor& features) { return encoder(adjacency, features); };
  const torch::Tensor before = parameters.tensors()[0].detach().clone();
  int asked = 0;
  const InfomaxReport report = deep_graph_infomax(
      parameters, x, encode, {.patience = 1000}, [&] { return ++asked > 3; }, rng);
  EXPECT_EQ(report.iterations, 3);
  const torch::Tensor after = parameters.tensors()[0].detach().clone();
  EXPECT_EQ(deep_graph_infomax(
                parameters, x, encode, {.iterations = 0}, [] { return false; }, rng)
                .iterations,
            0);
  EXPECT_TRUE(torch::equal(after, parameters.tensors()[0]));
}

TEST(Recompute, gives_the_values_and_gradients_of_the_function) {
  Rng rng(4);
  Parameters parameters;
  const Linear dense(parameters, "dense", 3, 3, rng);
  const torch::Tensor fixed = normals({2, 3}, rng);
  const auto step = [&](const std::vector<torch::Tensor>& in) {
    const torch::Tensor y = torch::tanh(dense(in[0]) + in[1]);
    return std::vector<torch::Tensor>{y, y * in[0]};
  };
  const auto total = [&](bool again) {
    std::vector<torch::Tensor> state{fixed.clone().requires_grad_(true), fixed};
    const torch::Tensor start = state[0];
    torch::Tensor sum = torch::zeros({});
    for (int i = 0; i < 3; ++i) {
      const std::vector<torch::Tensor> out =
          again ? recomputed(state, parameters.tensors(), step) : step(state);
      state = {out[0], out[1]};
      sum = sum + out[1].square().sum();
    }
    std::vector<torch::Tensor> wanted = parameters.tensors();
    wanted.push_back(start);
    std::vector<torch::Tensor> result = torch::autograd::grad({sum}, wanted);
    result.push_back(sum.detach());
    return result;
  };
  const std::vector<torch::Tensor> plain = total(false);
  const std::vector<torch::Tensor> again = total(true);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(torch::allclose(plain[i], again[i], 1e-6, 1e-7)) << i;
    EXPECT_GT(plain[i].abs().sum().item<double>(), 0);
  }
}

}  // namespace
}  // namespace emplace::learn
