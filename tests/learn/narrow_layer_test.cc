#include "learn/encoders/narrow_layer.h"

#include <gtest/gtest.h>

namespace emplace::learn {
namespace {

void expect_close(const torch::Tensor& a, const torch::Tensor& b) {
  EXPECT_TRUE(torch::allclose(a, b, 1e-4, 1e-4)) << (a - b).abs().max().item<float>();
}

TEST(NarrowLayer, is_a_linear_layer_with_its_gradients) {
  Rng rng(1);
  for (const std::int64_t rows : {1, 15, 16, 33, 100}) {
    for (const auto& [in, out] : {std::pair{1, 1}, {3, 5}, {10, 10}, {9, 18}, {64, 64}, {65, 2}}) {
      for (const bool relu : {false, true}) {
        Parameters parameters;
        const Linear layer(parameters, "layer", in, out, rng);
        {
          const torch::NoGradGuard no_gradients;
          torch::Tensor(layer.bias).copy_(normals({out}, rng));
        }
        torch::Tensor x = normals({rows, in}, rng).requires_grad_(true);
        const torch::Tensor slope = normals({rows, out}, rng);
        const torch::Tensor fast = narrow_layer(layer, x, relu);
        torch::Tensor plain = torch::matmul(x, layer.weight) + layer.bias;
        if (relu) plain = torch::relu(plain);
        expect_close(fast, plain);
        const std::vector<torch::Tensor> of{x, layer.weight, layer.bias};
        const auto of_fast = torch::autograd::grad({(fast * slope).sum()}, of);
        const auto of_plain = torch::autograd::grad({(plain * slope).sum()}, of);
        for (std::size_t i = 0; i < of.size(); ++i) expect_close(of_fast[i], of_plain[i]);
      }
    }
  }
}

TEST(NarrowLayer, rows_do_not_depend_on_each_other) {
  Rng rng(2);
  Parameters parameters;
  const Linear layer(parameters, "layer", 10, 7, rng);
  const torch::Tensor x = normals({50, 10}, rng);
  const torch::Tensor all = narrow_layer(layer, x, true);
  for (std::int64_t row = 0; row < 50; ++row) {
    EXPECT_TRUE(torch::equal(narrow_layer(layer, x.slice(0, row, row + 1), true)[0], all[row]));
  }
}

}  // namespace
}  // namespace emplace::learn
