#include "tensor/piece_times.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tensor/movers.h"
#include "tensor/piece_spec.h"
#include "tensor/ways.h"

namespace emplace {

PieceTimes::PieceTimes(const PartitionInput& input, const Problem& problem, const WorkerDevices& on,
                       const Budget* limit)
    : limit_(limit),
      input_(input),
      on_(on),
      cluster_(problem.cluster()),
      reader_(input.graph),
      builder_("pieces") {
  const Graph& graph = input.graph;
  ways_of_op_.assign(graph.num_ops(), nullptr);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op) || graph.is_view(op) || input.descriptions[op] == nullptr) continue;
    if (!graph.measured_times(op).empty()) continue;
    ways_of_op_[op] = add(op);
  }
  if (num_pieces_ == 0) return;
  const std::shared_ptr<const Cluster> cluster(std::shared_ptr<void>(), &cluster_);
  pieces_ = compile(std::make_shared<const Graph>(std::move(builder_).build()), cluster,
                    CompileOptions{.cost = problem.compile_options().cost});
}

const PieceTimes::Ways* PieceTimes::ways(OpId op) const {
  const Ways* found = ways_of_op_[op];
  return found == nullptr || found->empty() ? nullptr : found;
}

PieceTimes::Key PieceTimes::key_of(OpId op) const {
  const Graph& graph = input_.graph;
  std::vector<DType> types;
  for (const TensorId tensor : graph.inputs(op)) types.push_back(graph.dtype(tensor));
  for (const TensorId tensor : graph.outputs(op)) types.push_back(graph.dtype(tensor));
  return {input_.descriptions.signature(op), graph.flops(op), graph.bytes_moved(op),
          graph.phase(op), std::move(types)};
}

// Of what class a product is, and how well it is aligned, depends on how its operands reach it
// (cost/op_work.cc), which its pieces do not show.
bool PieceTimes::depends_on_operands(OpId op) {
  const Graph& graph = input_.graph;
  const OpClass op_class = reader_.work(op).op_class;
  if (std::find(kProductClasses.begin(), kProductClasses.end(), op_class) ==
      kProductClasses.end()) {
    return false;
  }
  const auto inputs = graph.inputs(op);
  return std::any_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
    const OpId producer = graph.producer(tensor);
    const OpRole role = graph.role(producer);
    const bool weight =
        role == OpRole::kParameter || role == OpRole::kConstant || role == OpRole::kBuffer;
    return graph.is_view(producer) || (weight && graph.phase(op) == Phase::kBackward);
  });
}

bool PieceTimes::is_certain(OpId op) {
  const Graph& graph = input_.graph;
  if (ways(op) == nullptr || depends_on_operands(op)) return false;
  // Partial results that nothing else reads are added where they are (tensor/lower.cc).
  const auto inputs = graph.inputs(op);
  const bool adds = graph.type(op) == "Add" || graph.type(op) == "Sum";
  return !adds || !std::all_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
    return graph.consumers(tensor).size() == 1;
  });
}

const PieceTimes::Ways* PieceTimes::add(OpId op) {
  const auto [at, added] = known_.try_emplace(key_of(op));
  if (!added) return &at->second;
  const tdl::Description& description = *input_.descriptions[op];
  const std::vector<std::int8_t> divisible = variables_to_cut(description);
  if (divisible.size() != description.divisible().size()) return &at->second;
  const double most = std::pow(static_cast<double>(divisible.size() + 1),
                               static_cast<double>(on_.workers.levels()));
  const bool many = most > static_cast<double>(kMostWays) || num_pieces_ > kMostPieces;
  if (many || is_late()) return &at->second;
  shapes_.clear();
  for (const Cuts& cuts :
       ways_to_cut({variables_of(description), divisible, on_.workers}, /*spare=*/true)) {
    if (is_late()) {  // some of its ways are no use
      at->second.clear();
      break;
    }
    add_way(op, description, cuts, at->second);
  }
  return &at->second;
}

void PieceTimes::add_way(OpId op, const tdl::Description& description, const Cuts& cuts,
                         Ways& ways) {
  const Graph& graph = input_.graph;
  const auto inputs = input_.shapes(graph.inputs(op));
  const auto outputs = input_.shapes(graph.outputs(op));
  Way way;
  for (Worker worker = 0; worker < on_.workers.count(); ++worker) {
    const tdl::Region box = part_of(variables_of(description), cuts, on_.workers, worker);
    const tdl::Piece piece = piece_of(description, box, inputs, outputs, graph.attributes(op));
    if (!piece.valid) return;  // no plan has it
    way.push_back(add_piece(op, description, piece));
  }
  ways.emplace(cuts, std::move(way));
}

// Pieces of one op with the same shapes and the same share of the work are one.
OpId PieceTimes::add_piece(OpId op, const tdl::Description& description, const tdl::Piece& piece) {
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

TensorId PieceTimes::source(const Shape& shape, DType dtype) {
  const auto [at, added] = sources_.try_emplace({shape, dtype});
  if (!added) return at->second;
  at->second = builder_.add({.name = fmt::format("source {}", sources_.size()), .type = "input"},
                            {{.shape = shape, .dtype = dtype}})[0];
  ++next_op_;
  return at->second;
}

}  // namespace emplace
