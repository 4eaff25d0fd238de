// Normalisations that native_norms.cc leaves. Gradients are derived (derived_gradients.cc).
#include <algorithm>
#include <cstdlib>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

struct Statistics {
  Tensor mean;
  Tensor variance;  // biased
};

Statistics statistics_of(const Tensor& x, const Integers& axes) {
  const Tensor mean = x.mean(axes, true);
  return {mean, ((x - mean) * (x - mean)).mean(axes, true)};
}

Tensor normalised(const Tensor& x, const Statistics& statistics, double epsilon) {
  return (x - statistics.mean) / (statistics.variance + epsilon).sqrt();
}

Tensor scaled_by_channel(const Tensor& x, const Call& call) {
  Tensor y = x * per_channel(call.in(1), x.dim());
  return call.has(2) ? y + per_channel(call.in(2), x.dim()) : y;
}

Integers axes_from(const Tensor& x, std::int64_t first) {
  Integers axes;
  for (std::int64_t axis = first; axis < x.dim(); ++axis) axes.push_back(axis);
  return axes;
}

// Also mean and inverse deviation.
Tensors layer_norm(const Call& call) {
  const Tensor& x = call.in(0);
  const Integers axes = axes_from(x, call.axis(x.dim(), -1));
  const Statistics statistics = statistics_of(x, axes);
  const double epsilon = call.real("epsilon", 1e-5);
  Tensor y = normalised(x, statistics, epsilon) * call.in(1);
  if (call.has(2)) y = y + call.in(2);
  return {y, statistics.mean, (statistics.variance + epsilon).rsqrt()};
}

// Also the inverse of the root of the mean square.
Tensors rms_norm(const Call& call) {
  const Tensor& x = call.in(0);
  const Integers axes = axes_from(x, call.axis(x.dim(), -1));
  const Tensor inverse = ((x * x).mean(axes, true) + call.real("epsilon", 1e-5)).rsqrt();
  const Tensor y = x * inverse * call.in(1);
  return {call.has(2) ? y + call.in(2) : y, inverse, inverse};
}

// Of the sum of an input and a skip; inputs: input, skip, scale, perhaps a bias of the scale, and
// one that is added first. Outputs of the input's shape beyond the first are that sum.
Tensors skip_norm(const Call& call, bool simplified) {
  Tensor sum = call.in(0) + call.in(1);
  if (const Tensor bias = call.given_at(simplified ? 3 : 4); bias.defined()) sum = sum + bias;
  Call norm{.type = call.type, .attributes = call.attributes, .inputs = {sum, call.in(2)}};
  norm.attributes.set("epsilon", call.real("epsilon", 1e-12));
  const Tensor scale_bias = simplified ? Tensor() : call.given_at(3);
  if (scale_bias.defined()) norm.inputs.push_back(scale_bias);
  const Tensors normed = simplified ? rms_norm(norm) : layer_norm(norm);
  Tensors results{normed[0]};
  for (std::size_t i = 1; i < call.outputs.size(); ++i) {
    const bool is_sum = call.outputs[i].shape == Shape(sum.sizes().begin(), sum.sizes().end());
    results.push_back(is_sum ? sum : normed.at(i));
  }
  return results;
}

Tensor instance_norm(const Call& call) {
  const Tensor& x = call.in(0);
  const Statistics statistics = statistics_of(x, all_axes_but(x.dim(), {0, 1}));
  return scaled_by_channel(normalised(x, statistics, call.real("epsilon", 1e-5)), call);
}

// Scale and bias are by channel or, before opset 21, by group.
Tensor group_norm(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t groups = call.integer("num_groups", call.integer("groups", 1));
  if (x.dim() < 2 || x.size(1) % groups != 0) fail_input("has no channels in {} groups", groups);
  const Tensor apart = x.reshape({x.size(0), groups, -1});
  const Tensor y =
      normalised(apart, statistics_of(apart, {2}), call.real("epsilon", 1e-5)).reshape(x.sizes());
  Call scale = call;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.in(i).numel() == x.size(1)) continue;
    scale.inputs[i] = call.in(i).repeat_interleave(x.size(1) / groups);
  }
  return scaled_by_channel(y, scale);
}

// Of each channel and those before and behind it.
Tensor neighbours_sum(const Tensor& x, std::int64_t before, std::int64_t behind) {
  Tensor sums = x.clone();
  before = std::min(before, x.size(1));
  behind = std::min(behind, x.size(1));
  for (std::int64_t i = -before; i <= behind; ++i) {
    const std::int64_t count = x.size(1) - std::abs(i);
    if (i == 0 || count <= 0) continue;
    const std::int64_t from = std::max<std::int64_t>(i, 0);
    sums.narrow(1, from - i, count).add_(x.narrow(1, from, count));
  }
  return sums;
}

// What an element is divided by, to the power of beta.
Tensor local_response(const Call& call, const Tensor& x) {
  const std::int64_t size = std::max<std::int64_t>(call.integer("size", 1), 1);
  const Tensor sums = neighbours_sum(x * x, (size - 1) / 2, size / 2);
  return call.real("bias", 1) + (call.real("alpha", 1e-4) / static_cast<double>(size)) * sums;
}

// Across neighbouring channels.
Tensor local_response_norm(const Call& call) {
  return call.in(0) * local_response(call, call.in(0)).pow(-call.real("beta", 0.75));
}

// From dy, X and Y. A channel is among those behind the ones that are before it.
Tensor local_response_gradient(const Call& call) {
  const Tensor& dy = call.in(0);
  const Tensor& x = call.in(1);
  const std::int64_t size = call.integer("size", 1);
  const double beta = call.real("beta", 0.75);
  const double factor = 2 * beta * call.real("alpha", 1e-4) / static_cast<double>(size);
  const Tensor base = local_response(call, x);
  const Tensor inner = neighbours_sum(dy * call.in(2) / base, size / 2, (size - 1) / 2);
  return dy * base.pow(-beta) - factor * x * inner;
}

Tensor lp_norm(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t axis = call.axis(x.dim(), -1);
  const Tensor size =
      call.integer("p", 2) == 1 ? x.abs().sum(axis, true) : (x * x).sum(axis, true).sqrt();
  return x / size;
}

Tensor mean_variance_norm(const Call& call) {
  Integers axes = call.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  const Statistics statistics = statistics_of(call.in(0), axes);
  return (call.in(0) - statistics.mean) / (statistics.variance.sqrt() + 1e-9);
}

}  // namespace

void add_norms(KernelTable& table) {
  table["LayerNormalization"] = layer_norm;
  table["SkipLayerNormalization"] = [](const Call& call) { return skip_norm(call, false); };
  table["SkipSimplifiedLayerNormalization"] = [](const Call& call) {
    return skip_norm(call, true);
  };
  table["InstanceNormalization"] = single(instance_norm);
  table["GroupNormalization"] = single(group_norm);
  table["LRN"] = single(local_response_norm);
  table["LRNGrad"] = single(local_response_gradient);
  table["LpNormalization"] = single(lp_norm);
  table["MeanVarianceNormalization"] = single(mean_variance_norm);
}

}  // namespace emplace::exec
