#include "tensor/work_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "cost/cost_model.h"

#include "tensor/piece_times.h"

namespace emplace {
namespace {

using Family = std::span<const OpClass>;

constexpr std::array kConvolutions{OpClass::kConvolution,   OpClass::kConvolutionGrad,
                                   OpClass::kConvolution1d, OpClass::kConvolution1dGrad,
                                   OpClass::kPointwise,     OpClass::kPointwiseGrad,
                                   OpClass::kDepthwise,     OpClass::kDepthwiseGrad};

// Classes that a part of an op of the class may be of: without its bias, with one group, a batch of
// one. Nothing for those whose parts may be of any.
Family family_of(OpClass op_class) {
  for (const Family family : {Family(kProductClasses), Family(kConvolutions)}) {
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

// By op, what all of its parts take at least, weighted by device; and the weights.
struct RateBound {
  std::vector<double> weights;  // by worker; they sum to 1
  std::vector<double> of_op;
};

RateBound bound_by_rates(const Problem& problem, const WorkerDevices& on) {
  const Graph& graph = problem.graph();
  WorkReader reader(graph);
  std::vector<std::vector<double>> times(on.devices.size());  // by worker and op
  RateBound result;
  double sum_of_weights = 0;
  for (std::size_t worker = 0; worker < on.devices.size(); ++worker) {
    double total = 1;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      const bool free = graph.is_source(op) || graph.is_view(op);
      times[worker].push_back(free ? 0 : least_ns(problem, reader, op, on.devices[worker]));
      total += times[worker].back();
    }
    result.weights.push_back(1 / total);
    sum_of_weights += result.weights.back();
  }
  for (double& weight : result.weights) weight /= sum_of_weights;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t worker = 0; worker < times.size(); ++worker) {
      least = std::min(least, times[worker][op] * result.weights[worker]);
    }
    // Times of parts are rounded to nanoseconds.
    result.of_op.push_back(std::max(0.0, least - 1));
  }
  return result;
}

// The least weighted sum over workers of what the op's pieces last; 0 where it is not known.
double least_of_ways(PieceTimes& pieces, OpId op, const std::vector<double>& weights) {
  if (!pieces.is_certain(op)) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [cuts, way] : *pieces.ways(op)) {
    double sum = 0;
    for (Worker worker = 0; worker < way.size(); ++worker) {
      sum += weights[worker] * static_cast<double>(pieces.duration(way, worker));
    }
    least = std::min(least, sum);
  }
  return least;
}

}  // namespace

Nanoseconds divided_rate_bound(const Problem& problem, const WorkerDevices& on) {
  double bound = 0;
  for (const double least : bound_by_rates(problem, on).of_op) bound += least;
  return static_cast<Nanoseconds>(std::floor(bound));
}

Nanoseconds divided_work_bound(const PartitionInput& input, const Problem& problem,
                               const WorkerDevices& on) {
  const RateBound rates = bound_by_rates(problem, on);
  PieceTimes pieces(input, problem, on);
  const Graph& graph = input.graph;
  double bound = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    double least = std::max(rates.of_op[op], least_of_ways(pieces, op, rates.weights));
    const bool computes = !graph.is_source(op) && !graph.is_view(op);
    if (computes && input.descriptions[op] == nullptr) {  // everybody does all of it
      least = 0;
      for (std::size_t worker = 0; worker < on.devices.size(); ++worker) {
        least +=
            rates.weights[worker] * static_cast<double>(problem.duration(op, on.devices[worker]));
      }
    }
    bound += least;
  }
  return static_cast<Nanoseconds>(std::floor(bound));
}

}  // namespace emplace
