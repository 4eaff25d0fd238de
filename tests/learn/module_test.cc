#include "learn/nn/module.h"

#include <gtest/gtest.h>

namespace emplace::learn {
namespace {

TEST(Module, draws_in_proportion_and_never_what_cannot_occur) {
  Rng rng(3);
  const torch::Tensor logits = torch::tensor({0.0F, -1e9F, 1.0986123F, -1e9F});
  const torch::Tensor log_probs = torch::log_softmax(logits, -1).expand({4000, 4});
  const torch::Tensor drawn = draw(log_probs, uniforms({4000}, rng));
  EXPECT_EQ((drawn == 1).sum().item<std::int64_t>(), 0);
  EXPECT_EQ((drawn == 3).sum().item<std::int64_t>(), 0);
  EXPECT_NEAR((drawn == 2).to(torch::kFloat32).mean().item<float>(), 0.75, 0.03);
  const torch::Tensor at_the_end = draw(log_probs.slice(0, 0, 1), torch::full({1}, 1.0F));
  EXPECT_EQ(at_the_end.item<std::int64_t>(), 2);
}

TEST(Module, gives_the_same_weights_for_the_same_seed) {
  Rng first(5), second(5);
  Parameters a, b;
  EXPECT_TRUE(torch::equal(a.glorot("w", 30, 20, first), b.glorot("w", 30, 20, second)));
  EXPECT_LE(a.tensors()[0].abs().max().item<float>(), std::sqrt(6.0 / 50));
}

}  // namespace
}  // namespace emplace::learn
