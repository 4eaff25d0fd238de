#include "learn/encoders/pair_scores.h"

#include <gtest/gtest.h>

#include "learn/nn/module.h"

namespace emplace::learn {
namespace {

TEST(PairScores, are_those_of_plain_operations_with_their_gradients) {
  Rng rng(1);
  for (const std::int64_t width : {1, 5, 16, 37}) {
    const torch::Tensor u = normals({3, 4, width}, rng).requires_grad_(true);
    const torch::Tensor q = normals({3, 2, width}, rng).requires_grad_(true);
    const torch::Tensor v = normals({width}, rng).requires_grad_(true);
    const torch::Tensor scores = pair_scores(u, q, v);
    const torch::Tensor plain = pair_scores_plainly(u, q, v);
    EXPECT_EQ(scores.sizes(), (std::vector<std::int64_t>{3, 4, 2}));
    EXPECT_TRUE(torch::allclose(scores, plain, 1e-5, 1e-5)) << width;
    const torch::Tensor weights = normals({3, 4, 2}, rng);
    const auto gradients = torch::autograd::grad({(scores * weights).sum()}, {u, q, v});
    const auto expected = torch::autograd::grad({(plain * weights).sum()}, {u, q, v});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(torch::allclose(gradients[i], expected[i], 1e-5, 1e-5)) << width << " " << i;
    }
  }
}

}  // namespace
}  // namespace emplace::learn
