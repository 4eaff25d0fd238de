// Pools over windows, and their gradients. A max pool keeps where its largest elements are.
#include <limits>

#include "base/error.h"

#include "exec/native.h"
#include "exec/pool_loops.h"
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
  if (x[0] != y[0] || x[1] != y[1]) {
    fail_input("makes {} images of {} channels of {} of {}", y[0], y[1], x[0], x[1]);
  }
  if (pool.lifted) {
    for (Integers* each : {&pool.kernel, &pool.strides, &pool.dilations}) {
      each->insert(each->begin(), 1);
    }
    pool.padding.insert(pool.padding.begin(), 0);
  }
  return pool;
}

// ---- on CPUs, by loops of our own

constexpr std::int64_t kMostElements = 256;  // of a window, which a byte tells apart

// Nothing where windows have gaps, or one lies beyond the image.
std::optional<loops::Plane> plane_of(const Window& window, const Shape& x, const Shape& y) {
  std::vector<loops::Plane::Axis> axes;
  for (std::size_t i = 0; i < window.dims(); ++i) {
    const loops::Plane::Axis axis{.extent = x[i + 2],
                                  .count = y[i + 2],
                                  .kernel = window.kernel[i],
                                  .stride = window.strides[i],
                                  .begin = window.begin[i]};
    const std::int64_t last = (axis.count - 1) * axis.stride - axis.begin;
    const bool within = axis.begin < axis.kernel && last < axis.extent && axis.count > 0;
    if (window.dilations[i] != 1 || !within) return std::nullopt;
    axes.push_back(axis);
  }
  if (axes.empty() || axes.size() > 2) return std::nullopt;
  loops::Plane plane{.row = axes.front(), .column = axes.back()};
  if (axes.size() == 1) plane.row = {};
  if (plane.row.kernel * plane.column.kernel > kMostElements) return std::nullopt;
  return plane;
}

// libtorch can differentiate its own kernels alone.
bool by_loops(const std::optional<loops::Plane>& plane, const Tensor& x) {
  const auto type = x.scalar_type();
  return plane && x.is_cpu() && !x.requires_grad() &&
         (type == torch::kFloat || type == torch::kDouble);
}

// Calls body(image, Real{}) for every image of every channel, shared by the threads.
template <class Body>
void for_images(const loops::Plane& plane, const Tensor& x, const Body& body) {
  for_parts(x.numel() / plane.windows(), [&](std::int64_t image) {
    if (x.scalar_type() == torch::kFloat) {
      body(image, float{});
    } else {
      body(image, double{});
    }
  });
}

struct Largest {
  Tensor values;
  Tensor which;  // bytes: of its window
};

Largest largest_by_loops(const loops::Plane& plane, const Tensor& input, const Shape& shape) {
  const Tensor x = input.contiguous();
  const Largest result{at::empty(shape, x.options()),
                       at::empty(shape, x.options().dtype(torch::kByte))};
  for_images(plane, result.values, [&](std::int64_t image, auto kind) {
    using Real = decltype(kind);
    std::vector<std::int32_t> row(static_cast<std::size_t>(plane.column.count));
    const std::int64_t at = image * plane.windows();
    loops::largest(plane, x.data_ptr<Real>() + image * plane.size(), row.data(),
                   result.values.data_ptr<Real>() + at, result.which.data_ptr<std::uint8_t>() + at);
  });
  return result;
}

Tensor largest_gradient_by_loops(const loops::Plane& plane, const Tensor& gradient,
                                 const Tensor& which, const Shape& shape) {
  const Tensor dy = gradient.contiguous();
  Tensor dx = at::zeros(shape, dy.options());
  for_images(plane, dy, [&](std::int64_t image, auto kind) {
    using Real = decltype(kind);
    const std::int64_t at = image * plane.windows();
    loops::largest_gradient(plane, dy.data_ptr<Real>() + at, which.data_ptr<std::uint8_t>() + at,
                            dx.data_ptr<Real>() + image * plane.size());
  });
  return dx;
}

Tensor average_by_loops(const loops::Plane& plane, const Tensor& input, const Tensor& counts,
                        const Shape& shape) {
  const Tensor x = input.contiguous();
  Tensor y = at::empty(shape, x.options());
  for_images(plane, y, [&](std::int64_t image, auto kind) {
    using Real = decltype(kind);
    loops::average(plane, x.data_ptr<Real>() + image * plane.size(), counts.data_ptr<Real>(),
                   y.data_ptr<Real>() + image * plane.windows());
  });
  return y;
}

Tensor average_gradient_by_loops(const loops::Plane& plane, const Tensor& gradient,
                                 const Tensor& counts, const Shape& shape) {
  const Tensor dy = gradient.contiguous();
  Tensor dx = at::zeros(shape, dy.options());
  for_images(plane, dy, [&](std::int64_t image, auto kind) {
    using Real = decltype(kind);
    std::vector<Real> shares(static_cast<std::size_t>(plane.column.count));
    loops::average_gradient(plane, dy.data_ptr<Real>() + image * plane.windows(),
                            counts.data_ptr<Real>(), shares.data(),
                            dx.data_ptr<Real>() + image * plane.size());
  });
  return dx;
}

// ---- by libtorch

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
  return [pool, begin, x = site.in(0), shape = site.out(),
          plane = plane_of(pool.frame.window, site.in(0), site.out()),
          padded = pool.frame.padded(site.in(0))](OpStep& step) {
    if (step.outputs.size() == 1 && by_loops(plane, step.inputs[0])) {
      Largest found = largest_by_loops(*plane, step.inputs[0], shape);
      step.outputs[0] = std::move(found.values);
      if (step.keep != nullptr) *step.keep = {std::move(found.which)};
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
  return [pool, shape = site.out(), plane = plane_of(pool.frame.window, site.out(), site.in(0)),
          padded = pool.frame.padded(site.out())](OpStep& step) {
    const bool kept = step.kept != nullptr && !step.kept->empty();
    const bool own = !kept || step.kept->front().scalar_type() == torch::kByte;
    if (own && by_loops(plane, step.inputs[0])) {
      const Tensor which =
          kept ? step.kept->front()
               : largest_by_loops(*plane, step.inputs[1], shape_of(step.inputs[0])).which;
      step.outputs[0] = largest_gradient_by_loops(*plane, step.inputs[0], which, shape);
      return;
    }
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
  std::optional<loops::Plane> plane = std::nullopt;
  Tensor counts = {};  // of a plane's windows
  Tensor shares = {};  // one over the counts; not defined: libtorch divides

  bool by_loops(const Tensor& x) const {
    return exec::by_loops(plane, x) && counts.scalar_type() == x.scalar_type();
  }
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

// How many elements each window of a plane counts: of the image, or also of the padding.
Tensor counts_of(const loops::Plane& plane, const Window& window, bool counts_padding) {
  const auto along = [&](const loops::Plane::Axis& axis, std::size_t dim) {
    const std::int64_t front = counts_padding ? axis.begin : 0;
    const std::int64_t behind = counts_padding ? window.declared_end.at(dim) : 0;
    Tensor counts = torch::empty({axis.count}, torch::kDouble);
    for (std::int64_t i = 0; i < axis.count; ++i) {
      const std::int64_t start = i * axis.stride - axis.begin;
      const std::int64_t end = std::min(start + axis.kernel, axis.extent + behind);
      counts[i] = static_cast<double>(end - std::max(start, -front));
    }
    return counts;
  };
  const Tensor columns = along(plane.column, window.dims() - 1);
  return window.dims() == 1 ? columns : at::outer(along(plane.row, 0), columns).contiguous();
}

std::optional<AveragePool> average_of(const Site& site, const Shape& x, const Shape& y) {
  AveragePool result{.pool = pool_of(site, x, y),
                     .counts_padding = site.call.integer("count_include_pad", 0) != 0};
  Frame& frame = result.pool.frame;
  for (const std::int64_t dilation : frame.window.dilations) {
    if (dilation != 1) return std::nullopt;
  }
  result.plane = plane_of(frame.window, x, y);
  if (result.plane) {
    result.counts =
        counts_of(*result.plane, frame.window, result.counts_padding).to(site.call.floating);
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
  return [average = *found, shape = site.out()](OpStep& step) {
    if (average.by_loops(step.inputs[0])) {
      step.outputs[0] = average_by_loops(*average.plane, step.inputs[0], average.counts, shape);
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
    if (average.by_loops(step.inputs[0])) {
      step.outputs[0] =
          average_gradient_by_loops(*average.plane, step.inputs[0], average.counts, shape);
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
