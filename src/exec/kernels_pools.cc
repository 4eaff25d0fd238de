// Pools over windows and over everything, and their gradients.
#include <limits>

#include "base/error.h"

#include "exec/window.h"

namespace emplace::exec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Shape pool_shape_of(const Tensor& x) {
  return {x.sizes().begin(), x.sizes().end()};
}

Window pool_window(const Call& call, const Shape& input, const Shape& output) {
  return window_of(call, call.integers("kernel_shape"), input, output);
}

// Maxima and where in the spatial dimensions of x they are.
std::tuple<Tensor, Tensor> max_with_indices(const Tensor& x, const Window& window) {
  const Integers none(window.dims(), 0);
  switch (window.dims()) {
    case 1:
      return at::max_pool1d_with_indices(x, window.kernel, window.strides, none, window.dilations);
    case 2:
      return at::max_pool2d_with_indices(x, window.kernel, window.strides, none, window.dilations);
    case 3:
      return at::max_pool3d_with_indices(x, window.kernel, window.strides, none, window.dilations);
    default:
      fail_input("has {} spatial dimensions, expected 1 to 3", window.dims());
  }
}

// ONNX counts elements of the whole tensor without its padding, libtorch those of one padded image.
Tensor whole_indices(const Tensor& indices, const Tensor& padded, const Tensor& x,
                     const Integers& begin) {
  Tensor rest = indices;
  Tensor result = torch::zeros_like(indices);
  std::int64_t stride = 1;
  for (std::size_t i = begin.size(); i-- > 0;) {
    const auto dim = static_cast<std::int64_t>(i) + 2;
    result = result + (rest.remainder(padded.size(dim)) - begin[i]) * stride;
    rest = at::div(rest, padded.size(dim), "floor");
    stride *= x.size(dim);
  }
  Integers leading(static_cast<std::size_t>(x.dim()), 1);
  leading[0] = x.size(0);
  leading[1] = x.size(1);
  return result + torch::arange(x.size(0) * x.size(1), torch::kLong).reshape(leading) * stride;
}

Tensors max_pool(const Call& call) {
  const Tensor& x = call.in(0);
  const Window window = pool_window(call, pool_shape_of(x), call.shape());
  const Tensor padded = pad_spatial(x, window.begin, window.end, -kInfinity);
  const auto [y, indices] = max_with_indices(padded, window);
  if (call.outputs.size() < 2) return {y};
  return {y, whole_indices(indices, padded, x, window.begin)};
}

// From dy and the indices, or from dy, x and y. Windows know which of several largest elements
// stands for them: the first.
Tensor max_pool_gradient(const Call& gradient) {
  const Tensor& dy = gradient.in(0);
  Tensor indices = gradient.in(1);
  if (indices.is_floating_point()) {
    Call forward{.type = "MaxPool", .attributes = gradient.attributes, .inputs = {indices}};
    forward.outputs.assign(2, tensor_type(pool_shape_of(dy), DType::kFloat64));
    indices = max_pool(forward)[1];
  }
  const Tensor result = zeros(gradient.shape()).flatten();
  return result.index_add(0, indices.flatten(), dy.flatten()).reshape(gradient.shape());
}

// Sums over windows, as a convolution of every channel by itself with ones.
Tensor window_sums(const Tensor& padded, const Window& window) {
  Shape images = pool_shape_of(padded);
  images[0] *= images[1];
  images[1] = 1;
  Integers ones{1, 1};
  ones.insert(ones.end(), window.kernel.begin(), window.kernel.end());
  const Integers none(window.dims(), 0);
  const Tensor sums = at::convolution(padded.reshape(images), torch::ones(ones, torch::kDouble), {},
                                      window.strides, none, window.dilations, false, none, 1);
  Shape shape = pool_shape_of(sums);
  shape[0] = padded.size(0);
  shape[1] = padded.size(1);
  return sums.reshape(shape);
}

// How many elements each window's mean is over: those of the input, or also those of the padding,
// but never what lies beyond it.
Tensor window_counts(const Call& call, const Tensor& x, const Window& window) {
  Shape shape = pool_shape_of(x);
  shape[0] = shape[1] = 1;
  Tensor counted = torch::ones(shape, torch::kDouble);
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
  const Window window = pool_window(call, pool_shape_of(x), call.shape());
  const Tensor padded = pad_spatial(x, window.begin, window.end, 0);
  return window_sums(padded, window) / window_counts(call, x, window);
}

Tensor lp_pool(const Call& call) {
  const Tensor& x = call.in(0);
  const Window window = pool_window(call, pool_shape_of(x), call.shape());
  const double p = call.real("p", 2);
  const Tensor powers = pad_spatial(x.abs().pow(p), window.begin, window.end, 0);
  return window_sums(powers, window).pow(1 / p);
}

Tensor global_average_pool(const Call& call) {
  const Tensor& x = call.in(0);
  const Integers axes = all_axes_but(x.dim(), {0, 1});
  const std::int64_t count = x.size(0) * x.size(1) == 0 ? 1 : x[0][0].numel();
  return x.sum(axes, true) / static_cast<double>(call.integer("mean_count", count));
}

Tensor global_max_pool(const Call& call) {
  return call.in(0).amax(all_axes_but(call.in(0).dim(), {0, 1}), true);
}

// From dy, x and y. Where several elements are the largest they share.
Tensor global_max_pool_gradient(const Call& call) {
  const Tensor hits = (call.in(1) == call.in(2)).to(torch::kDouble);
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
  table["MaxPool"] = max_pool;
  table["MaxPoolGrad"] = single(max_pool_gradient);
  table["AveragePool"] = single(average_pool);
  table["LpPool"] = single(lp_pool);
  table["GlobalAveragePool"] = single(global_average_pool);
  table["GlobalMaxPool"] = single(global_max_pool);
  table["GlobalMaxPoolGrad"] = single(global_max_pool_gradient);
  table["GlobalLpPool"] = single(global_lp_pool);
}

}  // namespace emplace::exec
