// Pools over windows, and their gradients. On CPUs, planes are this library's own (loops.h), which
// takes rows at a time; the gradient of a max pool looks for the largest elements again, as places
// would take twice the memory of the result until then. Everything else is libtorch's, and there a
// max pool keeps where its largest elements are.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/error.h"

#include "exec/loops.h"
#include "exec/native.h"
#include "exec/ranges.h"
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

using loops::PlaneWindows;
using loops::Windows;

// By the windows alone, which reach over any padding.
std::optional<PlaneWindows> planes_of(const Pool& pool, const Shape& x, const Shape& y) {
  const Window& window = pool.frame.window;
  if (window.dims() > 2) return std::nullopt;
  const auto along = [&](std::size_t i) {
    return Windows{.in = x[i + 2],
                   .out = y[i + 2],
                   .kernel = window.kernel[i],
                   .stride = window.strides[i],
                   .dilation = window.dilations[i],
                   .before = window.begin[i]};
  };
  if (window.dims() == 1) return PlaneWindows{.rows = {}, .columns = along(0)};
  return PlaneWindows{.rows = along(0), .columns = along(1)};
}

bool in_planes(const std::optional<PlaneWindows>& planes, const Tensor& x) {
  const auto type = x.scalar_type();
  return planes && x.is_cpu() && (type == torch::kFloat || type == torch::kDouble);
}

// body(from, into, buffer) for every plane of `from`, with a buffer for a row of `columns`.
template <class Body>
void for_planes(const Tensor& from, const Tensor& into, std::int64_t columns, const Body& body) {
  const std::int64_t planes = into.size(0) * into.size(1);
  if (planes == 0) return;
  const std::int64_t from_plane = from.numel() / planes;
  const std::int64_t into_plane = into.numel() / planes;
  const auto with = [&](auto kind) {
    using Real = decltype(kind);
    const Real* read = from.data_ptr<Real>();
    Real* written = into.data_ptr<Real>();
    for_parts(planes, [&](std::int64_t i) {
      std::vector<Real> buffer(static_cast<std::size_t>(columns));
      body(i, read + i * from_plane, written + i * into_plane, buffer.data());
    });
  };
  from.scalar_type() == torch::kFloat ? with(float{}) : with(double{});
}

Tensor largest_in_planes(const PlaneWindows& at, const Tensor& x, const Shape& shape) {
  const Tensor whole = x.contiguous();
  const Tensor y = torch::empty(shape, x.options());
  for_planes(whole, y, at.columns.in,
             [&](std::int64_t, const auto* from, auto* into, auto* buffer) {
               loops::max_pool(at, from, buffer, into);
             });
  return y;
}

Tensor spread_over_planes(const PlaneWindows& at, const Tensor& x, const Tensor& y,
                          const Tensor& dy) {
  const Tensor whole = x.contiguous();
  const Tensor largest = y.contiguous();
  const Tensor shares = dy.contiguous();
  const Tensor dx = torch::zeros(x.sizes(), x.options());
  const std::int64_t each = at.rows.out * at.columns.out;
  for_planes(whole, dx, at.columns.out,
             [&](std::int64_t plane, const auto* from, auto* into, auto* left) {
               using Real = std::remove_reference_t<decltype(*into)>;
               loops::max_pool_gradient(at, from, largest.data_ptr<Real>() + plane * each,
                                        shares.data_ptr<Real>() + plane * each, left, into);
             });
  return dx;
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
  return [pool, begin, x = site.in(0), shape = site.out(), padded = pool.frame.padded(site.in(0)),
          planes = planes_of(pool, site.in(0), site.out())](OpStep& step) {
    if (step.outputs.size() == 1 && in_planes(planes, step.inputs[0])) {
      step.outputs[0] = largest_in_planes(*planes, step.inputs[0], shape);
      return;
    }
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
  return [pool, padded = pool.frame.padded(site.out()), shape = site.in(0),
          planes = planes_of(pool, site.out(), site.in(0))](OpStep& step) {
    if (in_planes(planes, step.inputs[1])) {
      const Tensor& x = step.inputs[1];
      const Tensor y =
          step.inputs.size() > 2 ? step.inputs[2] : largest_in_planes(*planes, x, shape);
      step.outputs[0] = spread_over_planes(*planes, x, y, step.inputs[0]);
      return;
    }
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
  std::optional<PlaneWindows> planes = {};
  Tensor row_counts = {}, column_counts = {};  // of planes: what sums are divided by
  Tensor shares = {};                          // one over the counts; not defined: libtorch divides

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

// How many elements each window counts along an axis of planes.
Tensor counts_along(const Windows& at, std::int64_t declared_end, bool counts_padding) {
  Tensor counts = torch::empty({at.out}, torch::kDouble);
  const std::int64_t first = counts_padding ? -at.before : 0;
  const std::int64_t last = at.in + (counts_padding ? declared_end : 0);
  for (std::int64_t i = 0; i < at.out; ++i) {
    const std::int64_t start = i * at.stride - at.before;
    const std::int64_t count = std::min(start + at.kernel, last) - std::max(start, first);
    counts.data_ptr<double>()[i] = static_cast<double>(std::max<std::int64_t>(count, 0));
  }
  return counts;
}

void count_in_planes(const Site& site, const Shape& x, const Shape& y, AveragePool& average) {
  average.planes = planes_of(average.pool, x, y);
  if (!average.planes) return;
  const Window& window = average.pool.frame.window;
  const auto along = [&](const Windows& at, std::int64_t declared_end) {
    return counts_along(at, declared_end, average.counts_padding)
        .to(site.call.floating.device(torch::kCPU));
  };
  const bool one = window.dims() == 1;
  average.row_counts = along(average.planes->rows, one ? 0 : window.declared_end[0]);
  average.column_counts = along(average.planes->columns, window.declared_end[one ? 0 : 1]);
}

std::optional<AveragePool> average_of(const Site& site, const Shape& x, const Shape& y) {
  AveragePool result{.pool = pool_of(site, x, y),
                     .counts_padding = site.call.integer("count_include_pad", 0) != 0};
  Frame& frame = result.pool.frame;
  for (const std::int64_t dilation : frame.window.dilations) {
    if (dilation != 1) return std::nullopt;
  }
  count_in_planes(site, x, y, result);
  const bool even = frame.window.begin == frame.window.declared_end;
  if (!frame.pads_first && (even || !result.counts_padding)) return result;
  frame.pads_first = true;
  frame.ceil = false;
  result.pool.padding.assign(result.pool.padding.size(), 0);
  result.shares = shares_of(result.pool, x, result.counts_padding).to(site.call.floating);
  return result;
}

// Means of x, or what dy spreads over the windows.
Tensor average_planes(const AveragePool& average, const Tensor& from, const Shape& shape,
                      bool gradient) {
  const PlaneWindows& at = *average.planes;
  const Tensor row_counts = average.row_counts.to(from.scalar_type());
  const Tensor column_counts = average.column_counts.to(from.scalar_type());
  const Tensor whole = from.contiguous();
  const Tensor into =
      gradient ? torch::zeros(shape, from.options()) : torch::empty(shape, from.options());
  for_planes(whole, into, at.columns.in,
             [&](std::int64_t, const auto* read, auto* written, auto* buffer) {
               using Real = std::remove_reference_t<decltype(*written)>;
               const Real* rows = row_counts.data_ptr<Real>();
               const Real* columns = column_counts.data_ptr<Real>();
               if (gradient) {
                 loops::average_pool_gradient(at, read, rows, columns, buffer, written);
               } else {
                 loops::average_pool(at, read, rows, columns, buffer, written);
               }
             });
  return into;
}

Run compile_average_pool(const Site& site) {
  const auto found = average_of(site, site.in(0), site.out());
  if (!found) return {};
  return [average = *found, shape = site.out()](OpStep& step) {
    if (in_planes(average.planes, step.inputs[0])) {
      step.outputs[0] = average_planes(average, step.inputs[0], shape, false);
      return;
    }
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
  return [average = *found, shape = site.out(),
          padded = found->pool.frame.padded(site.out())](OpStep& step) {
    if (in_planes(average.planes, step.inputs[0])) {
      step.outputs[0] = average_planes(average, step.inputs[0], shape, true);
      return;
    }
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
