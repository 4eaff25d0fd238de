#include "tensor/work_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cost/cost_model.h"

#include "tensor/movers.h"
#include "tensor/piece_spec.h"

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

// All pieces that ops can be cut into, as one graph whose ops have nothing to do with each other,
// compiled as the divided graph is.
class PieceTimes {
 public:
  PieceTimes(const PartitionInput& input, const Problem& problem, const WorkerDevices& on)
      : input_(input),
        on_(on),
        cluster_(problem.cluster()),
        reader_(input.graph),
        builder_("pieces") {
    for (OpId op = 0; op < input.graph.num_ops(); ++op) {
      if (is_certain(op)) ways_of_op_.emplace(op, add(op));
    }
    if (num_pieces_ == 0) return;
    const std::shared_ptr<const Cluster> cluster(std::shared_ptr<void>(), &cluster_);
    pieces_ = compile(std::make_shared<const Graph>(std::move(builder_).build()), cluster,
                      CompileOptions{.cost = problem.compile_options().cost});
  }

  // The least weighted sum over workers; 0 where it is not known.
  double least(OpId op, const std::vector<double>& weights) const {
    const auto found = ways_of_op_.find(op);
    if (found == ways_of_op_.end() || found->second->empty()) return 0;
    double least = std::numeric_limits<double>::infinity();
    for (const std::vector<OpId>& way : *found->second) {
      double sum = 0;
      for (std::size_t worker = 0; worker < way.size(); ++worker) {
        sum += weights[worker] *
               static_cast<double>(pieces_->duration(way[worker], on_.devices[worker]));
      }
      least = std::min(least, sum);
    }
    return least;
  }

 private:
  static constexpr std::size_t kMostWays = 2000;
  static constexpr std::size_t kMostPieces = 200'000;
  using Ways = std::vector<std::vector<OpId>>;  // the piece of every worker
  // Ops of one signature differ in what the graph says of their work, and in types.
  using Key = std::tuple<std::uint32_t, std::optional<std::int64_t>, std::optional<Bytes>, Phase,
                         std::vector<DType>>;

  Key key_of(OpId op) const {
    const Graph& graph = input_.graph;
    std::vector<DType> types;
    for (const TensorId tensor : graph.inputs(op)) types.push_back(graph.dtype(tensor));
    for (const TensorId tensor : graph.outputs(op)) types.push_back(graph.dtype(tensor));
    return {input_.descriptions.signature(op), graph.flops(op), graph.bytes_moved(op),
            graph.phase(op), std::move(types)};
  }

  // Of what class a product is, and how well it is aligned, depends on how its operands reach it
  // (cost/op_work.cc), which its pieces do not show.
  bool depends_on_operands(OpId op) {
    const Graph& graph = input_.graph;
    const OpClass op_class = reader_.work(op).op_class;
    if (std::find(kProducts.begin(), kProducts.end(), op_class) == kProducts.end()) return false;
    const auto inputs = graph.inputs(op);
    return std::any_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
      const OpId producer = graph.producer(tensor);
      const OpRole role = graph.role(producer);
      const bool weight =
          role == OpRole::kParameter || role == OpRole::kConstant || role == OpRole::kBuffer;
      return graph.is_view(producer) || (weight && graph.phase(op) == Phase::kBackward);
    });
  }

  // Whether its pieces are those that its cuts make, and last what the cost model says.
  bool is_certain(OpId op) {
    const Graph& graph = input_.graph;
    if (graph.is_source(op) || graph.is_view(op)) return false;
    if (input_.descriptions[op] == nullptr || !graph.measured_times(op).empty()) return false;
    if (depends_on_operands(op)) return false;
    // Partial results that nothing else reads are added where they are (tensor/lower.cc).
    const auto inputs = graph.inputs(op);
    const bool adds = graph.type(op) == "Add" || graph.type(op) == "Sum";
    return !adds || !std::all_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
      return graph.consumers(tensor).size() == 1;
    });
  }

  const Ways* add(OpId op) {
    const auto [at, added] = known_.try_emplace(key_of(op));
    if (!added) return &at->second;
    const tdl::Description& description = *input_.descriptions[op];
    std::vector<std::int8_t> divisible;
    for (const tdl::VariableId v : description.divisible()) {
      if (v > std::numeric_limits<std::int8_t>::max()) return &at->second;
      divisible.push_back(static_cast<std::int8_t>(v));
    }
    const double most = std::pow(static_cast<double>(divisible.size() + 1),
                                 static_cast<double>(on_.workers.levels()));
    if (most > static_cast<double>(kMostWays) || num_pieces_ > kMostPieces) return &at->second;
    shapes_.clear();
    for (const Cuts& cuts :
         ways_to_cut(variables_of(description), divisible, on_.workers, /*spare=*/true)) {
      add_way(op, description, cuts, at->second);
    }
    return &at->second;
  }

  void add_way(OpId op, const tdl::Description& description, const Cuts& cuts, Ways& ways) {
    const Graph& graph = input_.graph;
    const auto inputs = input_.shapes(graph.inputs(op));
    const auto outputs = input_.shapes(graph.outputs(op));
    std::vector<OpId> way;
    for (Worker worker = 0; worker < on_.workers.count(); ++worker) {
      const tdl::Region box = part_of(variables_of(description), cuts, on_.workers, worker);
      const tdl::Piece piece = piece_of(description, box, inputs, outputs, graph.attributes(op));
      if (!piece.valid) return;  // no plan has it
      way.push_back(add_piece(op, description, piece));
    }
    ways.push_back(std::move(way));
  }

  // Pieces of one op with the same shapes and the same share of the work are one.
  OpId add_piece(OpId op, const tdl::Description& description, const tdl::Piece& piece) {
    const Graph& graph = input_.graph;
    std::vector<Shape> shapes{{std::llround(1e12 * share_of_box(description, piece.box))}};
    OpSpec spec = spec_of_piece(graph, op, &description, piece);
    for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
      shapes.push_back(piece.reads[i] != 0 ? shape_of(piece.inputs[i]) : Shape{-1});
      if (piece.reads[i] == 0) continue;
      spec.inputs.push_back(source(shapes.back(), graph.dtype(graph.inputs(op)[i])));
    }
    for (const tdl::Region& region : piece.outputs) shapes.push_back(shape_of(region));
    const auto [at, added] = shapes_.try_emplace(std::move(shapes));
    if (!added) return at->second;
    for (std::size_t i = 0; i < piece.outputs.size(); ++i) {
      spec.outputs.push_back(builder_.add_tensor(
          {.shape = shape_of(piece.outputs[i]), .dtype = graph.dtype(graph.outputs(op)[i])}));
    }
    spec.name = fmt::format("piece {}", num_pieces_++);
    spec.devices.clear();
    for (const DeviceId id : on_.devices) spec.devices.push_back(cluster_.device(id).name);
    spec.colocate.clear();
    builder_.add_op(spec);
    return at->second = next_op_++;
  }

  TensorId source(const Shape& shape, DType dtype) {
    const auto [at, added] = sources_.try_emplace({shape, dtype});
    if (!added) return at->second;
    at->second = builder_.add({.name = fmt::format("source {}", sources_.size()), .type = "input"},
                              {{.shape = shape, .dtype = dtype}})[0];
    ++next_op_;
    return at->second;
  }

  const PartitionInput& input_;
  const WorkerDevices& on_;
  const Cluster& cluster_;
  WorkReader reader_;
  GraphBuilder builder_;
  OpId next_op_ = 0;
  std::size_t num_pieces_ = 0;
  std::map<Key, Ways> known_;
  std::map<OpId, const Ways*> ways_of_op_;
  std::map<std::vector<Shape>, OpId> shapes_;  // pieces of the present op
  std::map<std::pair<Shape, DType>, TensorId> sources_;
  std::shared_ptr<const Problem> pieces_;
};

}  // namespace

Nanoseconds divided_rate_bound(const Problem& problem, const WorkerDevices& on) {
  double bound = 0;
  for (const double least : bound_by_rates(problem, on).of_op) bound += least;
  return static_cast<Nanoseconds>(std::floor(bound));
}

Nanoseconds divided_work_bound(const PartitionInput& input, const Problem& problem,
                               const WorkerDevices& on) {
  const RateBound rates = bound_by_rates(problem, on);
  const PieceTimes pieces(input, problem, on);
  const Graph& graph = input.graph;
  double bound = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    double least = std::max(rates.of_op[op], pieces.least(op, rates.weights));
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
