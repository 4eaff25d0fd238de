#include "learn/encoders/neighbours.h"

#include <gtest/gtest.h>

#include "learn/nn/module.h"

namespace emplace::learn {
namespace {

// Seven nodes: one hears of nobody, one of itself too, one of another twice.
Csr<std::uint32_t> lists() {
  Csr<std::uint32_t> result;
  for (const std::vector<std::uint32_t>& list : std::vector<std::vector<std::uint32_t>>{
           {1, 2}, {}, {0, 2, 5}, {6}, {0, 1, 2, 3, 5, 6}, {4, 4}, {}}) {
    result.push_back(list);
  }
  return result;
}
const std::vector<float> kWeights = {0.5F, 2, -1, 3, 1, 0.25F, 1, 2, 3, 4, 5, 6, 1.5F, 1};

// The sum as a product with a dense matrix.
torch::Tensor dense() {
  torch::Tensor matrix = torch::zeros({7, 7}, torch::kFloat64);
  std::size_t edge = 0;
  const Csr<std::uint32_t> rows = lists();
  for (std::size_t node = 0; node < rows.size(); ++node) {
    for (const std::uint32_t source : rows[node]) {
      matrix[static_cast<std::int64_t>(node)][source] += kWeights[edge++];
    }
  }
  return matrix;
}

// The maximum over neighbours one by one, by operations whose gradients libtorch knows; the first
// of equals by comparing strictly.
torch::Tensor one_by_one(const torch::Tensor& x) {
  std::vector<torch::Tensor> result;
  const Csr<std::uint32_t> rows = lists();
  for (std::size_t node = 0; node < rows.size(); ++node) {
    torch::Tensor best;
    for (const std::uint32_t source : rows[node]) {
      const torch::Tensor candidate = x.select(0, source);
      best = best.defined() ? torch::where(candidate > best, candidate, best) : candidate;
    }
    result.push_back(best.defined() ? best : torch::zeros_like(x.select(0, 0)));
  }
  return torch::stack(result, 0);
}

// Few distinct values, so that maxima tie.
torch::Tensor input(std::vector<std::int64_t> shape, torch::ScalarType type, Rng& rng) {
  return (uniforms(std::move(shape), rng) * 4 - 2).round().to(type).requires_grad_(true);
}

torch::Tensor gradient(const torch::Tensor& result, const torch::Tensor& x, std::uint64_t seed) {
  Rng rng(seed);
  const torch::Tensor weights = normals(result.sizes().vec(), rng).to(result.scalar_type());
  return torch::autograd::grad({(result * weights).sum()}, {x})[0];
}

// With one number or several for each node and column.
class Neighbourhood : public testing::TestWithParam<std::tuple<torch::ScalarType, bool>> {
 protected:
  torch::Tensor x() {
    Rng rng(7);
    const auto [type, batched] = GetParam();
    return batched ? input({7, 3, 5}, type, rng) : input({7, 5}, type, rng);
  }
};

TEST_P(Neighbourhood, sums_as_a_dense_product_does) {
  const torch::Tensor at = x();
  const Neighbours neighbours(lists(), kWeights, torch::kCPU);
  const torch::Tensor expected =
      torch::matmul(dense().to(at.scalar_type()), at.reshape({7, -1})).view(at.sizes());
  const torch::Tensor got = neighbours.sum(at);
  EXPECT_TRUE(torch::allclose(got, expected, 1e-5, 1e-5));
  EXPECT_TRUE(torch::allclose(gradient(got, at, 1), gradient(expected, at, 1), 1e-5, 1e-5));
}

TEST_P(Neighbourhood, sums_without_weights_count_each_edge_once) {
  const torch::Tensor at = x();
  const torch::Tensor got = Neighbours(lists(), {}, torch::kCPU).sum(at);
  EXPECT_TRUE(torch::allclose(got[5], 2 * at[4]));
  EXPECT_EQ(got[1].abs().sum().item<double>(), 0);
}

TEST_P(Neighbourhood, maxima_and_their_gradients_are_those_of_one_by_one) {
  const torch::Tensor at = x();
  const Neighbours neighbours(lists(), {}, torch::kCPU);
  const torch::Tensor expected = one_by_one(at);
  const torch::Tensor got = neighbours.max(at);
  EXPECT_TRUE(torch::equal(got, expected));
  EXPECT_TRUE(torch::allclose(gradient(got, at, 1), gradient(expected, at, 1), 1e-5, 1e-5));
}

INSTANTIATE_TEST_SUITE_P(Both, Neighbourhood,
                         testing::Combine(testing::Values(torch::kFloat32, torch::kFloat64),
                                          testing::Bool()));

TEST(Neighbours, without_edges_are_zero) {
  Csr<std::uint32_t> none;
  for (int i = 0; i < 3; ++i) none.push_back(std::vector<std::uint32_t>{});
  const Neighbours neighbours(none, {}, torch::kCPU);
  EXPECT_EQ(neighbours.nodes(), 3);
  EXPECT_EQ(neighbours.edges(), 0);
  for (const torch::ScalarType type : {torch::kFloat32, torch::kFloat64}) {
    const torch::Tensor x = torch::ones({3, 2}, type).requires_grad_(true);
    EXPECT_EQ(neighbours.sum(x).abs().sum().item<double>(), 0);
    EXPECT_EQ(neighbours.max(x).abs().sum().item<double>(), 0);
    EXPECT_EQ(gradient(neighbours.max(x), x, 1).abs().sum().item<double>(), 0);
  }
}

}  // namespace
}  // namespace emplace::learn
