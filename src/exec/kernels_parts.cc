// What partitioned graphs have beside pieces of ops: cutting tensors into blocks, putting blocks
// together, adding up partial results, and batch normalisation in two halves, whose first gives
// statistics of parts of a batch that add up.
#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

Tensor block_of(const Tensor& whole, const Integers& begin, const Integers& size) {
  Tensor block = whole;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    block = block.narrow(static_cast<std::int64_t>(i), begin[i], size.at(i));
  }
  return block;
}

// Attributes: begin and size of the block, for every dimension.
Tensor cut(const Call& call) {
  return block_of(call.in(0), call.integers("begin"), call.integers("size"));
}

// Attributes: begin_0, begin_1, ...: where each input lies. Blocks are disjoint and cover the
// whole.
Tensor join(const Call& call) {
  Tensor whole = torch::empty(call.shape(), call.in(0).options().requires_grad(false));
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& block = call.in(i);
    const Integers size(block.sizes().begin(), block.sizes().end());
    block_of(whole, call.integers("begin_" + std::to_string(i)), size).copy_(block);
    covered += block.numel();
  }
  if (covered != whole.numel()) {
    fail_input("has blocks of {} elements, expected {}", covered, whole.numel());
  }
  return whole;
}

using Binary = Tensor (*)(const Tensor&, const Tensor&);

Kernel combine(Binary function) {
  return single([function](const Call& call) {
    Tensor result = call.in(0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i) result = function(result, call.in(i));
    return result;
  });
}

Tensor sum_by_channel(const Tensor& x) {
  return x.sum(all_axes_but(x.dim(), {1}));
}

double count_of(const Call& call) {
  if (!call.given("count")) fail_input("attributes: 'count' is missing");
  return static_cast<double>(call.integer("count", 1));
}

// x: its share of the mean and of the mean of squares.
Tensor statistics(const Call& call) {
  const Tensor& x = call.in(0);
  return at::stack({sum_by_channel(x), sum_by_channel(x * x)}) / count_of(call);
}

struct Normal {
  Tensor values;   // of mean 0 and deviation 1
  Tensor inverse;  // of the deviation, by channel
};

Normal normal_of(const Tensor& x, const Tensor& statistics, double epsilon) {
  const Tensor mean = statistics[0];
  const Tensor inverse = per_channel((statistics[1] - mean * mean + epsilon).rsqrt(), x.dim());
  return {(x - per_channel(mean, x.dim())) * inverse, inverse};
}

// x, scale, bias, statistics.
Tensor apply(const Call& call) {
  const Tensor& x = call.in(0);
  const Normal normal = normal_of(x, call.in(3), call.real("epsilon", 1e-5));
  return normal.values * per_channel(call.in(1), x.dim()) + per_channel(call.in(2), x.dim());
}

// statistics, the old mean, the old variance. ONNX's momentum is the share of the old. Where a
// count is given, the variance is that of a sample of so many.
Tensors running(const Call& call) {
  const double old = call.real("momentum", 0.9);
  const Tensor mean = call.in(0)[0];
  Tensor variance = call.in(0)[1] - mean * mean;
  if (call.given("count")) variance = variance * (count_of(call) / (count_of(call) - 1));
  return {call.in(1) * old + mean * (1 - old), call.in(2) * old + variance * (1 - old)};
}

// dy, x, statistics: the bias's and the scale's gradient, or their shares.
Tensor gradient_statistics(const Call& call) {
  const Tensor& dy = call.in(0);
  const Normal normal = normal_of(call.in(1), call.in(2), call.real("epsilon", 1e-5));
  return at::stack({sum_by_channel(dy), sum_by_channel(dy * normal.values)});
}

// dy, x, scale, statistics, and their gradients' sums over the whole batch.
Tensor gradient_apply(const Call& call) {
  const Tensor& dy = call.in(0);
  const Normal normal = normal_of(call.in(1), call.in(3), call.real("epsilon", 1e-5));
  const Tensor mean_dy = per_channel(call.in(4)[0], dy.dim()) / count_of(call);
  const Tensor mean_dy_normal = per_channel(call.in(4)[1], dy.dim()) / count_of(call);
  return per_channel(call.in(2), dy.dim()) * normal.inverse *
         (dy - mean_dy - normal.values * mean_dy_normal);
}

}  // namespace

void add_parts(KernelTable& table) {
  table["PartSlice"] = single(cut);
  table["PartJoin"] = single(join);
  table["PartSum"] = combine([](const Tensor& a, const Tensor& b) { return a + b; });
  table["PartMax"] = combine([](const Tensor& a, const Tensor& b) { return at::maximum(a, b); });
  table["PartMin"] = combine([](const Tensor& a, const Tensor& b) { return at::minimum(a, b); });
  table["PartProd"] = combine([](const Tensor& a, const Tensor& b) { return a * b; });
  table["BatchNormRunning"] = running;
  table["BatchNormStatistics"] = single(statistics);
  table["BatchNormApply"] = single(apply);
  table["BatchNormGradStatistics"] = single(gradient_statistics);
  table["BatchNormGradApply"] = single(gradient_apply);
}

}  // namespace emplace::exec
