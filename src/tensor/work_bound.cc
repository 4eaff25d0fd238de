#include "tensor/work_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "cost/cost_model.h"

#include "tensor/movement.h"
#include "tensor/piece_spec.h"

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

// What all of an op's parts take at least, weighted by device; and the weights.
struct RateBound {
  std::vector<double> weights;             // by worker; they sum to 1
  std::vector<std::vector<double>> times;  // by op and worker: of the whole op
  std::vector<double> of_op;
};

RateBound bound_by_rates(const Problem& problem, const WorkerDevices& on) {
  const Graph& graph = problem.graph();
  WorkReader reader(graph);
  RateBound result;
  result.times.resize(graph.num_ops());
  double sum_of_weights = 0;
  for (const DeviceId device : on.devices) {
    double total = 1;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      const bool free = graph.is_source(op) || graph.is_view(op);
      result.times[op].push_back(free ? 0 : least_ns(problem, reader, op, device));
      total += result.times[op].back();
    }
    result.weights.push_back(1 / total);
    sum_of_weights += result.weights.back();
  }
  for (double& weight : result.weights) weight /= sum_of_weights;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t worker = 0; worker < on.devices.size(); ++worker) {
      least = std::min(least, result.times[op][worker] * result.weights[worker]);
    }
    // Times of parts are rounded to nanoseconds.
    result.of_op.push_back(std::max(0.0, least - 1));
  }
  return result;
}

bool makes_partial_sums(const tdl::Description& description, std::size_t output) {
  const std::vector<tdl::VariableId> divisible = description.divisible();
  return std::any_of(divisible.begin(), divisible.end(), [&](tdl::VariableId variable) {
    return variable <= std::numeric_limits<std::int8_t>::max() &&
           role_of_cut(description, output, static_cast<std::int8_t>(variable)) ==
               LevelRole::kPartial;
  });
}

}  // namespace

std::vector<std::uint8_t> may_add_partial_results(const PartitionInput& input) {
  const Graph& graph = input.graph;
  std::vector<std::uint8_t> result(graph.num_ops(), 0);
  const auto may_be_partial = [&](TensorId tensor) {
    const OpId producer = graph.producer(tensor);
    if (graph.consumers(tensor).size() != 1 || graph.is_source(producer)) return false;
    if (result[producer] != 0) return true;
    const tdl::Description* description = input.descriptions[producer];
    const auto outputs = graph.outputs(producer);
    const auto at = std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin();
    return description != nullptr && makes_partial_sums(*description, static_cast<std::size_t>(at));
  };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const auto inputs = graph.inputs(op);
    const bool adds = (graph.type(op) == "Add" || graph.type(op) == "Sum") && !inputs.empty();
    result[op] = adds && std::all_of(inputs.begin(), inputs.end(), may_be_partial) ? 1 : 0;
  }
  return result;
}

WorkBound::WorkBound(const PartitionInput& input, const Problem& problem, const WorkerDevices& on,
                     const Budget* limit)
    : input_(input),
      on_(on),
      pieces_(input, problem, on, limit),
      adds_(may_add_partial_results(input)) {
  RateBound rates = bound_by_rates(problem, on);
  weights_ = std::move(rates.weights);
  rates_ = std::move(rates.times);
  least_ = std::move(rates.of_op);
  const Graph& graph = input.graph;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op) || graph.is_view(op)) continue;
    if (input.descriptions[op] == nullptr) {  // everybody does all of it
      least_[op] = 0;
      for (std::size_t worker = 0; worker < on.devices.size(); ++worker) {
        least_[op] +=
            weights_[worker] * static_cast<double>(problem.duration(op, on.devices[worker]));
      }
      continue;
    }
    const Cuts whole(on.workers.levels(), kUncut);
    least_[op] = of_ways(op, {whole}, 0)[0];
  }
}

double WorkBound::of_all() const {
  double sum = 0;
  for (const double least : least_) sum += least;
  return sum;
}

// What its certain pieces take, or, in each of the groups that the first levels make, at least the
// group's share of the op on its fastest device.
std::vector<double> WorkBound::of_ways(OpId op, const std::vector<Cuts>& beginnings,
                                       std::size_t levels) {
  std::vector<double> result(beginnings.size(), least_[op]);
  const Graph& graph = input_.graph;
  const tdl::Description* description = input_.descriptions[op];
  if (graph.is_source(op) || graph.is_view(op) || description == nullptr) return result;
  if (pieces_.is_certain(op)) {
    std::map<Cuts, double> least;
    for (const auto& [cuts, way] : *pieces_.ways(op)) {
      double sum = 0;
      for (Worker worker = 0; worker < way.size(); ++worker) {
        sum += weights_[worker] * static_cast<double>(pieces_.duration(way, worker));
      }
      Cuts beginning = cuts;
      std::fill(beginning.begin() + static_cast<std::ptrdiff_t>(levels), beginning.end(), kUncut);
      const auto [at, added] = least.try_emplace(std::move(beginning), sum);
      if (!added) at->second = std::min(at->second, sum);
    }
    for (std::size_t i = 0; i < beginnings.size(); ++i) {
      const auto found = least.find(beginnings[i]);
      if (found != least.end()) result[i] = std::max(result[i], found->second);
    }
    return result;
  }
  if (levels == 0 || adds_[op] != 0) return result;
  const Worker groups = on_.workers.first(levels).count();
  const Worker size = on_.workers.count() / groups;
  for (std::size_t i = 0; i < beginnings.size(); ++i) {
    double sum = -1;  // times of parts are rounded to nanoseconds
    for (Worker first = 0; first < on_.workers.count(); first += size) {
      double least = std::numeric_limits<double>::infinity();
      for (Worker worker = first; worker < first + size; ++worker) {
        least = std::min(least, rates_[op][worker] * weights_[worker]);
      }
      sum += least * share_of_box(*description, part_of(variables_of(*description), beginnings[i],
                                                        on_.workers, first));
    }
    result[i] = std::max(result[i], sum);
  }
  return result;
}

Nanoseconds divided_rate_bound(const Problem& problem, const WorkerDevices& on) {
  double bound = 0;
  for (const double least : bound_by_rates(problem, on).of_op) bound += least;
  return static_cast<Nanoseconds>(std::floor(bound));
}

Nanoseconds divided_work_bound(const PartitionInput& input, const Problem& problem,
                               const WorkerDevices& on) {
  return static_cast<Nanoseconds>(std::floor(WorkBound(input, problem, on).of_all()));
}

}  // namespace emplace
