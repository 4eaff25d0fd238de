// Pools are libtorch's, whatever their windows are.
#include <gtest/gtest.h>

#include "base/rng.h"

#include "exec/run_op.h"

namespace emplace::exec {
namespace {

struct Drawn {
  Integers kernel, strides, padding, dilations;
  Shape x, y;

  Attributes attributes() const {
    Attributes result;
    result.set("kernel_shape", kernel);
    result.set("strides", strides);
    result.set("dilations", dilations);
    Integers pads = padding;
    pads.insert(pads.end(), padding.begin(), padding.end());
    result.set("pads", pads);
    return result;
  }
};

Drawn draw(Rng& rng, bool dilated) {
  for (;;) {
    Drawn drawn;
    drawn.x = drawn.y = {2, 3};
    bool some = true;
    for (int i = 0; i < 2; ++i) {
      const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng.below(n)); };
      const std::int64_t kernel = 1 + below(4);
      const std::int64_t stride = 1 + below(3);
      const std::int64_t dilation = dilated ? 1 + below(2) : 1;
      const std::int64_t padding = below(static_cast<std::uint64_t>(kernel / 2 + 1));
      const std::int64_t extent = 1 + below(12);
      const std::int64_t room = extent + 2 * padding - dilation * (kernel - 1) - 1;
      some = some && room >= 0;
      drawn.kernel.push_back(kernel);
      drawn.strides.push_back(stride);
      drawn.dilations.push_back(dilation);
      drawn.padding.push_back(padding);
      drawn.x.push_back(extent);
      drawn.y.push_back(room / stride + 1);
    }
    if (some) return drawn;
  }
}

// With elements that are equal, and some that are no numbers.
Tensor with_ties(const Shape& shape, bool holes) {
  Tensor x = torch::randint(-3, 4, shape, torch::kDouble);
  if (holes) x.masked_fill_(torch::rand(shape) < 0.05, std::numeric_limits<double>::quiet_NaN());
  return x;
}

TEST(Pools, largest_elements_and_where_gradients_go) {
  torch::manual_seed(5);
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    const Drawn drawn = draw(rng, true);
    const Tensor x = with_ties(drawn.x, round % 4 == 0);
    const auto [y, places] =
        at::max_pool2d_with_indices(x, drawn.kernel, drawn.strides, drawn.padding, drawn.dilations);
    ASSERT_TRUE(at::allclose(run("MaxPool", {x}, drawn.y, drawn.attributes()), y, 0, 0, true));
    if (round % 4 == 0) continue;
    const Tensor dy = random(drawn.y);
    const Tensor dx = at::max_pool2d_with_indices_backward(
        dy, x, drawn.kernel, drawn.strides, drawn.padding, drawn.dilations, false, places);
    ASSERT_TRUE(same(run("MaxPoolGrad", {dy, x, y}, drawn.x, drawn.attributes()), dx)) << round;
  }
}

TEST(Pools, means_with_and_without_their_padding) {
  torch::manual_seed(6);
  Rng rng(6);
  for (int round = 0; round < 200; ++round) {
    const Drawn drawn = draw(rng, false);
    const bool counted = round % 2 == 0;
    Attributes attributes = drawn.attributes();
    attributes.set("count_include_pad", std::int64_t{counted});
    const Tensor x = random(drawn.x);
    const Tensor y = at::avg_pool2d(x, drawn.kernel, drawn.strides, drawn.padding, false, counted);
    ASSERT_TRUE(same(run("AveragePool", {x}, drawn.y, attributes), y)) << round;
    const Tensor dy = random(drawn.y);
    const Tensor dx = at::avg_pool2d_backward(dy, x, drawn.kernel, drawn.strides, drawn.padding,
                                              false, counted, c10::nullopt);
    ASSERT_TRUE(same(run("AveragePoolGrad", {dy}, drawn.x, attributes), dx)) << round;
  }
}

}  // namespace
}  // namespace emplace::exec
