// Pools by loops of our own are libtorch's, bit for bit, with what the forward op keeps and
// without.
#include <limits>

#include <gtest/gtest.h>

#include "base/rng.h"

#include "graph/graph_builder.h"

#include "exec/compiled_op.h"
#include "exec/equal_bits.h"
#include "exec/run_op.h"

namespace emplace::exec {
namespace {

struct Pooling {
  Integers kernel, strides, pads;
  std::int64_t rows = 0, columns = 0;
  bool counts_padding = false;

  Attributes attributes() const {
    return {{"kernel_shape", kernel},
            {"strides", strides},
            {"pads", Integers{pads[0], pads[1], pads[0], pads[1]}},
            {"count_include_pad", std::int64_t{counts_padding}}};
  }
};

Pooling random_pooling(Rng& rng) {
  const auto some = [&](std::int64_t least, std::uint64_t choices) {
    return least + static_cast<std::int64_t>(rng.below(choices));
  };
  Pooling pooling{.kernel = {some(1, 4), some(1, 4)},
                  .strides = {some(1, 3), some(1, 3)},
                  .pads = {},
                  .rows = some(4, 9),
                  .columns = some(4, 30),
                  .counts_padding = rng.chance(0.5)};
  for (const std::int64_t kernel : pooling.kernel) {
    pooling.pads.push_back(some(0, static_cast<std::uint64_t>(kernel / 2 + 1)));
  }
  return pooling;
}

// Few numbers, so that many are equal, and some that are none.
Tensor random_image(const Pooling& pooling, torch::ScalarType type) {
  const Tensor x =
      torch::randint(-3, 3, {2, 3, pooling.rows, pooling.columns}, torch::TensorOptions(type));
  x.flatten()[1] = std::numeric_limits<double>::quiet_NaN();
  x.flatten()[7] = -std::numeric_limits<double>::infinity();
  x[1][2].fill_(-std::numeric_limits<double>::infinity());
  return x;
}

// An op by itself, compiled for that type.
struct Compiled {
  CompiledOp op;

  Compiled(const std::string& type, const std::vector<Shape>& inputs, const Shape& output,
           const Attributes& attributes, torch::ScalarType real_type) {
    GraphBuilder builder(type);
    OpSpec spec{.name = "op", .type = type, .attributes = attributes};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto x =
          builder.add({.name = fmt::format("x{}", i), .type = "input"}, {real(inputs[i])});
      spec.inputs.push_back(x[0]);
    }
    builder.add(spec, {real(output)});
    const Graph graph = std::move(builder).build();
    op = compile_op(graph, static_cast<OpId>(graph.num_ops() - 1), {.real = real_type});
  }

  Tensor run(const Tensors& inputs, Tensors* keep = nullptr, const Tensors* kept = nullptr) const {
    Tensors outputs(1);
    OpStep step{.inputs = inputs, .outputs = outputs, .keep = keep, .kept = kept};
    op.run(step);
    return outputs[0];
  }
};

Shape sizes(const Tensor& x) {
  return {x.sizes().begin(), x.sizes().end()};
}

class Pools : public ::testing::TestWithParam<torch::ScalarType> {
 protected:
  Pools() { torch::manual_seed(8); }
};

TEST_P(Pools, of_largest_elements) {
  Rng rng(21);
  for (int round = 0; round < 200; ++round) {
    const Pooling pooling = random_pooling(rng);
    const Tensor x = random_image(pooling, GetParam());
    const auto [y, indices] =
        at::max_pool2d_with_indices(x, pooling.kernel, pooling.strides, pooling.pads);
    const Compiled forward("MaxPool", {sizes(x)}, sizes(y), pooling.attributes(), GetParam());
    Tensors kept;
    EXPECT_TRUE(equal_bits(forward.run({x}, &kept), y));
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0].scalar_type(), torch::kByte) << "by libtorch";
    const Tensor dy = torch::randn(y.sizes(), y.options());
    const Tensor dx = at::max_pool2d_with_indices_backward(dy, x, pooling.kernel, pooling.strides,
                                                           pooling.pads, {1, 1}, false, indices);
    const Compiled backward("MaxPoolGrad", {sizes(y), sizes(x), sizes(y)}, sizes(x),
                            pooling.attributes(), GetParam());
    EXPECT_TRUE(equal_bits(backward.run({dy, x, y}, nullptr, &kept), dx));
    EXPECT_TRUE(equal_bits(backward.run({dy, x, y}), dx));
    EXPECT_TRUE(equal_bits(backward.run({dy, x, y}, nullptr, &kept),
                           backward.run({dy.transpose(2, 3).contiguous().transpose(2, 3), x, y})));
  }
}

TEST_P(Pools, of_means) {
  Rng rng(22);
  for (int round = 0; round < 200; ++round) {
    const Pooling pooling = random_pooling(rng);
    const Tensor x = torch::randn({2, 3, pooling.rows, pooling.columns}, GetParam());
    const Tensor y = at::avg_pool2d(x, pooling.kernel, pooling.strides, pooling.pads, false,
                                    pooling.counts_padding);
    const Compiled forward("AveragePool", {sizes(x)}, sizes(y), pooling.attributes(), GetParam());
    EXPECT_TRUE(equal_bits(forward.run({x}), y));
    const Tensor dy = torch::randn(y.sizes(), y.options());
    const Tensor dx = at::avg_pool2d_backward(dy, x, pooling.kernel, pooling.strides, pooling.pads,
                                              false, pooling.counts_padding, c10::nullopt);
    const Compiled backward("AveragePoolGrad", {sizes(y), sizes(x)}, sizes(x), pooling.attributes(),
                            GetParam());
    EXPECT_TRUE(equal_bits(backward.run({dy, x}), dx));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Pools, ::testing::Values(torch::kFloat, torch::kDouble),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace emplace::exec
