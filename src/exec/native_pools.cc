// Pools over windows, and their gradients. A max pool keeps where its largest elements are.
#include <limits>

#include "base/error.h"

#include "exec/native.h"
#include "exec/window.h"

namespace emplace::exec {
namespace {

// In two or three dimensions: one is two, of which the first is 1.
struct Pool {
  Frame frame;
  Integers kernel, strides, padding, dilations;
  bool lifted = false;

  std::size_t dims() const { return kernel.size(); }
  Tensor lift(const Tensor& x) const { return lifted ? x.unsqueeze(2) : x; }
  Tensor lower(const Tensor& x) const { return lifted ? x.squeeze(2) : x; }
};

Pool pool_of(const Site& site, const Shape& x, const Shape& y) {
  const Window window = window_of(site.call, site.call.integers("kernel_shape"), x, y);
  Pool pool{.frame = frame_of(window, x, y, Rounding::kEither),
            .kernel = window.kernel,
            .strides = window.strides,
            .padding = {},
            .dilations = window.dilations,
            .lifted = window.dims() == 1};
  pool.padding = pool.frame.padding;
  if (window.dims() < 1 || window.dims() > 3) {
    fail_input("has {} spatial dimensions, expected 1 to 3", window.dims());
  }
  if (pool.lifted) {
    for (Integers* each : {&pool.kernel, &pool.strides, &pool.dilations}) {
      each->insert(each->begin(), 1);
    }
    pool.padding.insert(pool.padding.begin(), 0);
  }
  return pool;
}

// Maxima, and where in their images they are.
std::tuple<Tensor, Tensor> largest(const Pool& pool, const Tensor& x) {
  const Tensor padded = pool.lift(pool.frame.pad(x, -std::numeric_limits<double>::infinity()));
  return pool.dims() == 2
             ? at::max_pool2d_with_indices(padded, pool.kernel, pool.strides, pool.padding,
                                           pool.dilations, pool.frame.ceil)
             : at::max_pool3d_with_indices(padded, pool.kernel, pool.strides, pool.padding,
                                           pool.dilations, pool.frame.ceil);
}

// ONNX counts elements of the whole tensor without its padding, libtorch those of one image.
Tensor whole_indices(const Tensor& indices, const Shape& padded, const Shape& x,
                     const Integers& begin) {
  Tensor rest = indices;
  Tensor result = torch::zeros_like(indices);
  std::int64_t stride = 1;
  for (std::size_t i = begin.size(); i-- > 0;) {
    result = result + (rest.remainder(padded[i + 2]) - begin[i]) * stride;
    rest = at::div(rest, padded[i + 2], "floor");
    stride *= x[i + 2];
  }
  Integers leading(x.size(), 1);
  leading[0] = x[0];
  leading[1] = x[1];
  return result + torch::arange(x[0] * x[1], indices.options()).reshape(leading) * stride;
}

Run compile_max_pool(const Site& site) {
  const Pool pool = pool_of(site, site.in(0), site.out());
  const Integers begin =
      pool.frame.pads_first ? pool.frame.window.begin : Integers(pool.frame.padding.size(), 0);
  return [pool, begin, x = site.in(0), padded = pool.frame.padded(site.in(0))](OpStep& step) {
    const auto [y, indices] = largest(pool, step.inputs[0]);
    step.outputs[0] = pool.lower(y);
    if (step.outputs.size() > 1) {
      step.outputs[1] = whole_indices(pool.lower(indices), padded, x, begin);
    }
    if (step.keep != nullptr) *step.keep = {indices};
  };
}

// By places in the whole tensor.
Run compile_by_places(const Site& site) {
  return [shape = site.out()](OpStep& step) {
    const Tensor& dy = step.inputs[0];
    const Tensor result = torch::zeros({count_elements(shape)}, dy.options());
    step.outputs[0] = result.index_add_(0, step.inputs[1].flatten(), dy.flatten()).view(shape);
  };
}

// From dy and the indices, or from dy, x and y. Windows know which of several largest elements
// stands for them: the first.
Run compile_max_pool_grad(const Site& site) {
  if (!site.is_floating(1)) return compile_by_places(site);
  const Pool pool = pool_of(site, site.out(), site.in(0));
  return [pool, padded = pool.frame.padded(site.out())](OpStep& step) {
    const bool kept = step.kept != nullptr && !step.kept->empty();
    const Tensor indices = kept ? step.kept->front() : std::get<1>(largest(pool, step.inputs[1]));
    const Tensor dy = pool.lift(step.inputs[0].contiguous());
    const Tensor x = pool.lift(scratch(padded, dy.options()));
    const Tensor dx =
        pool.dims() == 2
            ? at::max_pool2d_with_indices_backward(dy, x, pool.kernel, pool.strides, pool.padding,
                                                   pool.dilations, pool.frame.ceil, indices)
            : at::max_pool3d_with_indices_backward(dy, x, pool.kernel, pool.strides, pool.padding,
                                                   pool.dilations, pool.frame.ceil, indices);
    step.outputs[0] = pool.frame.unpad(pool.lower(dx));
  };
}

// A mean over windows as libtorch takes it, or sums of an input that was padded first, each divided
// by how many elements it counts.
struct AveragePool {
  Pool pool;
  bool counts_padding = false;
  Tensor shares = {};  // one over the counts; not defined: libtorch divides

  c10::optional<std::int64_t> divisor() const {
    return shares.defined() ? c10::optional<std::int64_t>(1) : c10::nullopt;
  }
};

// Where windows are ones, how many of the ones each has.
Tensor window_sum(const Pool& pool, const Tensor& padded) {
  const Tensor x = pool.lift(padded);
  const Integers none(pool.dims(), 0);
  return pool.lower(pool.dims() == 2
                        ? at::avg_pool2d(x, pool.kernel, pool.strides, none, false, true, 1)
                        : at::avg_pool3d(x, pool.kernel, pool.strides, none, false, true, 1));
}

// Elements of the input, or also those of the padding, but never what lies beyond it.
Tensor shares_of(const Pool& pool, const Shape& x, bool counts_padding) {
  const Window& window = pool.frame.window;
  Shape image = x;
  image[0] = image[1] = 1;
  Tensor counted = torch::ones(image, torch::kDouble);
  Integers begin = window.begin;
  Integers end = window.end;
  if (counts_padding) {
    counted = pad_spatial(counted, window.begin, window.declared_end, 1);
    begin.assign(window.dims(), 0);
    for (std::size_t i = 0; i < window.dims(); ++i) end[i] -= window.declared_end[i];
  }
  return window_sum(pool, pad_spatial(counted, begin, end, 0)).reciprocal();
}

std::optional<AveragePool> average_of(const Site& site, const Shape& x, const Shape& y) {
  AveragePool result{.pool = pool_of(site, x, y),
                     .counts_padding = site.call.integer("count_include_pad", 0) != 0};
  Frame& frame = result.pool.frame;
  for (const std::int64_t dilation : frame.window.dilations) {
    if (dilation != 1) return std::nullopt;
  }
  const bool even = frame.window.begin == frame.window.declared_end;
  if (!frame.pads_first && (even || !result.counts_padding)) return result;
  frame.pads_first = true;
  frame.ceil = false;
  result.pool.padding.assign(result.pool.padding.size(), 0);
  result.shares = shares_of(result.pool, x, result.counts_padding).to(site.call.floating);
  return result;
}

Run compile_average_pool(const Site& site) {
  const auto found = average_of(site, site.in(0), site.out());
  if (!found) return {};
  return [average = *found](OpStep& step) {
    const Pool& pool = average.pool;
    const Tensor x = pool.lift(pool.frame.pad(step.inputs[0], 0));
    const Tensor y =
        pool.dims() == 2
            ? at::avg_pool2d(x, pool.kernel, pool.strides, pool.padding, pool.frame.ceil,
                             average.counts_padding, average.divisor())
            : at::avg_pool3d(x, pool.kernel, pool.strides, pool.padding, pool.frame.ceil,
                             average.counts_padding, average.divisor());
    step.outputs[0] = pool.lower(y);
    if (average.shares.defined()) step.outputs[0] = step.outputs[0] * average.shares;
  };
}

// From dy.
Run compile_average_pool_grad(const Site& site) {
  const auto found = average_of(site, site.out(), site.in(0));
  if (!found) return {};
  return [average = *found, padded = found->pool.frame.padded(site.out())](OpStep& step) {
    const Pool& pool = average.pool;
    Tensor dy = step.inputs[0].contiguous();
    if (average.shares.defined()) dy = dy * average.shares;
    const Tensor x = pool.lift(scratch(padded, dy.options()));
    const Tensor dx =
        pool.dims() == 2
            ? at::avg_pool2d_backward(pool.lift(dy), x, pool.kernel, pool.strides, pool.padding,
                                      pool.frame.ceil, average.counts_padding, average.divisor())
            : at::avg_pool3d_backward(pool.lift(dy), x, pool.kernel, pool.strides, pool.padding,
                                      pool.frame.ceil, average.counts_padding, average.divisor());
    step.outputs[0] = pool.frame.unpad(pool.lower(dx));
  };
}

}  // namespace

void add_native_pools(CompilerTable& table) {
  table["MaxPool"] = compile_max_pool;
  table["MaxPoolGrad"] = compile_max_pool_grad;
  table["AveragePool"] = compile_average_pool;
  table["AveragePoolGrad"] = compile_average_pool_grad;
}

}  // namespace emplace::exec
