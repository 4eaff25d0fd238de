// Pools over everything, and those over windows that native_pools.cc leaves.
#include "base/error.h"

#include "exec/window.h"

namespace emplace::exec {
namespace {

Window pool_window(const Call& call, const Shape& input, const Shape& output) {
  return window_of(call, call.integers("kernel_shape"), input, output);
}

// Sums over windows, as a convolution of every channel by itself with ones.
Tensor window_sums(const Tensor& padded, const Window& window) {
  Shape images = shape_of(padded);
  images[0] *= images[1];
  images[1] = 1;
  Integers ones{1, 1};
  ones.insert(ones.end(), window.kernel.begin(), window.kernel.end());
  const Integers none(window.dims(), 0);
  const Tensor sums = at::convolution(padded.reshape(images), torch::ones(ones, padded.options()),
                                      {}, window.strides, none, window.dilations, false, none, 1);
  Shape shape = shape_of(sums);
  shape[0] = padded.size(0);
  shape[1] = padded.size(1);
  return sums.reshape(shape);
}

// How many elements each window's mean is over: those of the input, or also those of the padding,
// but never what lies beyond it.
Tensor window_counts(const Call& call, const Tensor& x, const Window& window) {
  Shape shape = shape_of(x);
  shape[0] = shape[1] = 1;
  Tensor counted = torch::ones(shape, x.options());
  if (call.integer("count_include_pad", 0) == 0) {
    return window_sums(pad_spatial(counted, window.begin, window.end, 0), window);
  }
  Integers beyond;
  for (std::size_t i = 0; i < window.dims(); ++i) {
    beyond.push_back(window.end[i] - window.declared_end[i]);
  }
  counted = pad_spatial(counted, window.begin, window.declared_end, 1);
  return window_sums(pad_spatial(counted, Integers(window.dims(), 0), beyond, 0), window);
}

Tensor average_pool(const Call& call) {
  const Tensor& x = call.in(0);
  const Window window = pool_window(call, shape_of(x), call.shape());
  const Tensor padded = pad_spatial(x, window.begin, window.end, 0);
  return window_sums(padded, window) / window_counts(call, x, window);
}

Tensor lp_pool(const Call& call) {
  const Tensor& x = call.in(0);
  const Window window = pool_window(call, shape_of(x), call.shape());
  const double p = call.real("p", 2);
  const Tensor powers = pad_spatial(x.abs().pow(p), window.begin, window.end, 0);
  return window_sums(powers, window).pow(1 / p);
}

Tensor global_average_pool(const Call& call) {
  const Tensor& x = call.in(0);
  const Integers axes = all_axes_but(x.dim(), {0, 1});
  if (!call.given("mean_count")) return x.mean(axes, true);
  return x.sum(axes, true) / static_cast<double>(call.integer("mean_count", 1));
}

// From dy.
Tensor global_average_pool_gradient(const Call& call) {
  const Shape& shape = call.shape();
  if (shape.size() < 2) fail_input("has {} dimensions, expected 2 or more", shape.size());
  const std::int64_t pixels = count_elements({shape.begin() + 2, shape.end()});
  const auto count = static_cast<double>(call.integer("mean_count", pixels));
  return call.in(0).expand(shape) / count;
}

Tensor global_max_pool(const Call& call) {
  return call.in(0).amax(all_axes_but(call.in(0).dim(), {0, 1}), true);
}

// From dy, x and y. Where several elements are the largest they share.
Tensor global_max_pool_gradient(const Call& call) {
  const Tensor hits = (call.in(1) == call.in(2)).to(call.in(0).dtype());
  const Tensor count = hits.sum(all_axes_but(hits.dim(), {0, 1}), true);
  return call.in(0) * hits / count.clamp_min(1);
}

Tensor global_lp_pool(const Call& call) {
  const Tensor& x = call.in(0);
  const double p = call.real("p", 2);
  return x.abs().pow(p).sum(all_axes_but(x.dim(), {0, 1}), true).pow(1 / p);
}

}  // namespace

void add_pools(KernelTable& table) {
  table["AveragePool"] = single(average_pool);
  table["LpPool"] = single(lp_pool);
  table["GlobalAveragePool"] = single(global_average_pool);
  table["GlobalAveragePoolGrad"] = single(global_average_pool_gradient);
  table["GlobalMaxPool"] = single(global_max_pool);
  table["GlobalMaxPoolGrad"] = single(global_max_pool_gradient);
  table["GlobalLpPool"] = single(global_lp_pool);
}

}  // namespace emplace::exec
