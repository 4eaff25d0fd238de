// Sums, means, extremes along axes, and softmax.
#include <algorithm>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

// From the attribute or the second input; none: all, unless the op says that none means none.
Integers axes_of(const Call& call, std::int64_t rank, std::size_t input) {
  Integers axes = call.numbers("axes", input);
  if (axes.empty() && call.integer("noop_with_empty_axes", 0) == 0) {
    return all_axes_but(rank, {});
  }
  for (std::int64_t& axis : axes) axis = from_front(axis, rank);
  return axes;
}

Integers axes_of(const Call& call, const Tensor& x, std::size_t input) {
  return axes_of(call, x.dim(), input);
}

using Reduction = Tensor (*)(const Tensor& x, const Integers& axes);  // keeps the axes

// Whether axes are kept is in the output's shape.
void add_reduction(KernelTable& table, const std::string& type, Reduction function) {
  table[type] = single([function](const Call& call) {
    const Tensor& x = call.in(0);
    const Integers axes = axes_of(call, x, 1);
    return (axes.empty() ? x : function(x, axes)).reshape(call.shape());
  });
}

// A part of a mean divides by what the whole does, so that parts add up.
Tensor mean(const Call& call) {
  const Tensor& x = call.in(0);
  const Integers axes = axes_of(call, x, 1);
  if (axes.empty()) return x;
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= x.size(axis);
  const std::int64_t divisor = call.integer("mean_count", count);
  if (divisor == count) return x.mean(axes, true).reshape(call.shape());
  return (x.sum(axes, true) / static_cast<double>(divisor)).reshape(call.shape());
}

// From dy, perhaps the axes: every element of what was summed up gets it.
Tensor sum_gradient(const Call& call) {
  const auto rank = static_cast<std::int64_t>(call.shape().size());
  Shape kept = call.shape();
  for (const std::int64_t axis : axes_of(call, rank, 1)) kept[static_cast<std::size_t>(axis)] = 1;
  return call.in(0).reshape(kept).expand(call.shape());
}

Tensor mean_gradient(const Call& call) {
  const std::int64_t own = std::max<std::int64_t>(call.in(0).numel(), 1);
  const std::int64_t count = call.integer("mean_count", count_elements(call.shape()) / own);
  return sum_gradient(call) / static_cast<double>(count);
}

Tensor reduced_product(const Tensor& x, const Integers& axes) {
  Tensor result = x;
  for (const std::int64_t axis : axes) result = result.prod(axis, true);
  return result;
}

// From dy, x, perhaps the axes, and y. Where several elements are the largest they share.
Tensor extreme_gradient(const Call& call) {
  const Tensor& x = call.in(1);
  const Integers axes = axes_of(call, x, call.inputs.size() > 3 ? 2 : call.inputs.size());
  Shape kept(x.sizes().begin(), x.sizes().end());
  for (const std::int64_t axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
  const Tensor hits = (x == call.inputs.back().reshape(kept)).to(x.dtype());
  const Tensor count = axes.empty() ? hits : hits.sum(axes, true);
  return call.in(0).reshape(kept) * hits / count.clamp_min(1);
}

// What a softmax is taken of, along which axis.
struct Line {
  Tensor x;
  std::int64_t axis;
};

// All dimensions before the axis by all others.
Tensor as_rows(const Tensor& x, std::int64_t axis) {
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < axis; ++i) rows *= x.size(i);
  return x.reshape({rows, x.numel() / std::max<std::int64_t>(rows, 1)});
}

// Before opset 13 (`flattened`), of all dimensions from the axis on.
Line line_of(const Call& call, const Tensor& x) {
  const std::int64_t axis = call.axis(x.dim(), -1);
  if (call.integer("flattened", 0) == 0) return {x, axis};
  return {as_rows(x, axis), 1};
}

Tensor softmax(const Call& call) {
  const Line line = line_of(call, call.in(0));
  return line.x.softmax(line.axis).reshape(call.in(0).sizes());
}

Tensor log_softmax(const Call& call) {
  const Line line = line_of(call, call.in(0));
  return line.x.log_softmax(line.axis).reshape(call.in(0).sizes());
}

// libtorch reads these as if they lay together, and divides by how many there are.
void expect_alike(const Tensor& dy, const Tensor& y) {
  if (dy.sizes() != y.sizes()) fail_input("has a gradient of another shape than its result's");
}

Tensor softmax_gradient(const Call& call) {
  expect_alike(call.in(0), call.in(1));
  if (call.in(1).numel() == 0) return torch::zeros_like(call.in(1));
  const Line dy = line_of(call, call.in(0).contiguous());
  const Line y = line_of(call, call.in(1).contiguous());
  return at::_softmax_backward_data(dy.x, y.x, y.axis, y.x.scalar_type())
      .reshape(call.in(1).sizes());
}

Tensor log_softmax_gradient(const Call& call) {
  expect_alike(call.in(0), call.in(1));
  if (call.in(1).numel() == 0) return torch::zeros_like(call.in(1));
  const Line dy = line_of(call, call.in(0).contiguous());
  const Line y = line_of(call, call.in(1).contiguous());
  return at::_log_softmax_backward_data(dy.x, y.x, y.axis, y.x.scalar_type())
      .reshape(call.in(1).sizes());
}

// The scores and a bias that broadcasts to them; of all dimensions from the axis on.
Tensor bias_softmax(const Call& call) {
  const Tensor scores = call.in(0) + call.in(1);
  const std::int64_t axis = call.axis(scores.dim(), std::min<std::int64_t>(1, scores.dim() - 1));
  return as_rows(scores, axis).softmax(1).reshape(scores.sizes());
}

Tensor hardmax(const Call& call) {
  const auto [x, axis] = line_of(call, call.in(0));
  return torch::zeros_like(x).scatter(axis, x.argmax(axis, true), 1).reshape(call.in(0).sizes());
}

Tensor cumulative_sum(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t axis = from_front(call.in(1).item<std::int64_t>(), x.dim());
  const bool reverse = call.integer("reverse", 0) != 0;
  const Tensor forward = reverse ? x.flip(axis) : x;
  Tensor sums = forward.cumsum(axis);
  if (call.integer("exclusive", 0) != 0) sums = sums - forward;
  return reverse ? sums.flip(axis) : sums;
}

Tensor cumulative_product(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t axis = from_front(call.in(1).item<std::int64_t>(), x.dim());
  const bool reverse = call.integer("reverse", 0) != 0;
  Tensor factors = reverse ? x.flip(axis) : x;
  if (call.integer("exclusive", 0) != 0) {
    factors = at::cat(
        {torch::ones_like(factors.narrow(axis, 0, 1)), factors.narrow(axis, 0, x.size(axis) - 1)},
        axis);
  }
  const Tensor products = factors.cumprod(axis);
  return reverse ? products.flip(axis) : products;
}

// Where several are the largest, the first, or the last where the op says so.
Tensor position_of(const Call& call, bool largest) {
  const Tensor& x = call.in(0);
  const std::int64_t axis = call.axis(x.dim(), 0);
  const bool last = call.integer("select_last_index", 0) != 0;
  const Tensor ordered = last ? x.flip(axis) : x;
  const Tensor at = largest ? ordered.argmax(axis, true) : ordered.argmin(axis, true);
  return (last ? x.size(axis) - 1 - at : at).reshape(call.shape());
}

}  // namespace

void add_reductions(KernelTable& table) {
  add_reduction(table, "ReduceL1",
                [](const Tensor& x, const Integers& axes) { return x.abs().sum(axes, true); });
  add_reduction(table, "ReduceL2", [](const Tensor& x, const Integers& axes) {
    return (x * x).sum(axes, true).sqrt();
  });
  add_reduction(table, "ReduceLogSum",
                [](const Tensor& x, const Integers& axes) { return x.sum(axes, true).log(); });
  add_reduction(table, "ReduceLogSumExp",
                [](const Tensor& x, const Integers& axes) { return x.logsumexp(axes, true); });
  add_reduction(table, "ReduceMax",
                [](const Tensor& x, const Integers& axes) { return x.amax(axes, true); });
  add_reduction(table, "ReduceMin",
                [](const Tensor& x, const Integers& axes) { return x.amin(axes, true); });
  add_reduction(table, "ReduceProd", reduced_product);
  add_reduction(table, "ReduceSum",
                [](const Tensor& x, const Integers& axes) { return x.sum(axes, true); });
  add_reduction(table, "ReduceSumSquare",
                [](const Tensor& x, const Integers& axes) { return (x * x).sum(axes, true); });
  table["ReduceMean"] = single(mean);
  table["ReduceMeanGrad"] = single(mean_gradient);
  table["ReduceSumGrad"] = single(sum_gradient);
  table["ReduceMaxGrad"] = single(extreme_gradient);
  table["ReduceMinGrad"] = single(extreme_gradient);
  table["Softmax"] = single(softmax);
  table["SoftmaxGrad"] = single(softmax_gradient);
  table["LogSoftmax"] = single(log_softmax);
  table["LogSoftmaxGrad"] = single(log_softmax_gradient);
  table["BiasSoftmax"] = single(bias_softmax);
  table["Hardmax"] = single(hardmax);
  table["CumSum"] = single(cumulative_sum);
  table["CumProd"] = single(cumulative_product);
  table["ArgMax"] = single([](const Call& call) { return position_of(call, true); });
  table["ArgMin"] = single([](const Call& call) { return position_of(call, false); });
}

}  // namespace emplace::exec
