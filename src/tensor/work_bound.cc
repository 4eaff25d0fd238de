#include "tensor/work_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "cost/cost_model.h"

namespace emplace {
namespace {

using Family = std::span<const OpClass>;

constexpr std::array kProducts{OpClass::kMatMul, OpClass::kLinear, OpClass::kMatMulGrad,
                               OpClass::kBatchedMatMul};
constexpr std::array kConvolutions{OpClass::kConvolution,   OpClass::kConvolutionGrad,
                                   OpClass::kConvolution1d, OpClass::kConvolution1dGrad,
                                   OpClass::kPointwise,     OpClass::kPointwiseGrad,
                                   OpClass::kDepthwise,     OpClass::kDepthwiseGrad};

// Classes that a part of an op of the class may be of: without its bias, with one group, a batch of
// one. Nothing for those whose parts may be of any.
Family family_of(OpClass op_class) {
  for (const Family family : {Family(kProducts), Family(kConvolutions)}) {
    if (std::find(family.begin(), family.end(), op_class) != family.end()) return family;
  }
  return {};
}

// The FLOPs of the whole op, by the best of the classes. A part has no more tiles, and no deeper
// sums, so it is done at no higher a rate.
double least_compute_us(const OpWork& whole, const DeviceKind& kind) {
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](OpClass op_class) {
    OpWork work = whole;
    work.op_class = op_class;
    work.bytes = 0;
    work.unaligned = false;
    CostCurve curve = kind.curves[op_class];
    curve.ramp_us = 0;
    const double peak = peak_flops(kind, work.dtype, op_class);
    least = std::min(least, curve_time_us(work, curve, peak, kind.memory_bandwidth, 0));
  };
  const Family family = family_of(whole.op_class);
  for (const OpClass op_class : family) consider(op_class);
  for (std::size_t i = 0; family.empty() && i < kNumOpClasses; ++i) {
    consider(static_cast<OpClass>(i));
  }
  return least;
}

double best_bandwidth(const DeviceKind& kind) {
  double best = 0;
  for (std::size_t i = 0; i < kNumOpClasses; ++i) {
    best = std::max(best, kind.curves[static_cast<OpClass>(i)].bandwidth);
  }
  return best * kind.memory_bandwidth;
}

double least_ns(const Problem& problem, WorkReader& reader, OpId op, DeviceId id) {
  const Graph& graph = problem.graph();
  const auto whole = static_cast<double>(problem.duration(op, id));
  const Device& device = problem.cluster().device(id);
  const bool measured =
      problem.compile_options().cost != CostMode::kAnalytic && measured_time_us(graph, op, device);
  if (measured) return whole;
  const DeviceKind& kind = problem.cluster().kind_of(id);
  double written = 0;
  for (const TensorId tensor : graph.outputs(op)) {
    written += static_cast<double>(graph.bytes(tensor));
  }
  const double bandwidth = best_bandwidth(kind);
  const double memory_us = bandwidth > 0 ? written / bandwidth * 1e6 : 0;
  const double least_us = std::max(least_compute_us(reader.work(op), kind), memory_us);
  return std::min(whole, least_us * 1000 * device.slowdown.to_double());
}

}  // namespace

Nanoseconds divided_work_bound(const Problem& problem, const WorkerDevices& on) {
  const Graph& graph = problem.graph();
  WorkReader reader(graph);
  std::vector<std::vector<double>> times(on.devices.size());  // by worker and op
  std::vector<double> weights;
  double sum_of_weights = 0;
  for (std::size_t worker = 0; worker < on.devices.size(); ++worker) {
    double total = 1;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      const bool free = graph.is_source(op) || graph.is_view(op);
      times[worker].push_back(free ? 0 : least_ns(problem, reader, op, on.devices[worker]));
      total += times[worker].back();
    }
    weights.push_back(1 / total);
    sum_of_weights += weights.back();
  }
  double bound = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    double least = times[0][op] * weights[0];
    for (std::size_t worker = 1; worker < weights.size(); ++worker) {
      least = std::min(least, times[worker][op] * weights[worker]);
    }
    // Times of parts are rounded to nanoseconds.
    bound += std::max(0.0, least / sum_of_weights - 1);
  }
  return static_cast<Nanoseconds>(std::floor(bound));
}

}  // namespace emplace
