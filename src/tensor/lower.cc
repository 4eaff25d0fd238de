// Op by op, in order. Invariant: values_ says for every tensor so far which region each worker has,
// in which lowered tensor, and whether that is a partial result; once an op's outputs are stored
// they lie as the plan wants, save for partial sums that are reduced later. A piece reads exactly
// the region that the description says it touches; blocks that lie elsewhere are sliced there,
// sent, and joined where they are read. So the lowered graph computes the same, which tests check
// by running both in an interpreter; sums are in another order.
//
// Not the least traffic possible: a block is taken from the nearest worker that has it, one read at
// a time. What was fetched is used again within 16 ops, and not kept longer, as it takes memory.
// Partial sums that are only added to each other are reduced after the addition, once. A transfer
// of something old waits for the op that the reader runs 8 ops earlier (Tofu's control
// dependencies, Wang, Huang, Li, EuroSys 2019).
//
// Flops, bytes and measured times of a piece are the op's, times its share of the variables' box.
// O(ops * workers * (inputs * blocks)) pieces and movers.
#include "tensor/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"

#include "graph/copy.h"
#include "graph/graph_builder.h"
#include "graph/random_ops.h"
#include "graph/tensor_type.h"

#include "tensor/movement.h"

namespace emplace {
namespace {

using tdl::Region;

// A block is sent when the worker that wants it has come this near to needing it, in ops.
constexpr std::size_t kLookahead = 8;
// What was fetched for one op serves those that follow it this closely.
constexpr OpId kReuse = 16;

Shape shape_of(const Region& region) {
  Shape shape;
  for (const tdl::Interval& range : region) shape.push_back(range.size());
  return shape;
}

std::vector<std::int64_t> begin_of(const Region& region) {
  std::vector<std::int64_t> begin;
  for (const tdl::Interval& range : region) begin.push_back(range.begin);
  return begin;
}

// In the coordinates of a block that contains it.
std::vector<std::int64_t> begin_within(const Region& region, const Region& outer) {
  std::vector<std::int64_t> begin;
  for (std::size_t d = 0; d < region.size(); ++d) begin.push_back(region[d].begin - outer[d].begin);
  return begin;
}

std::string_view reduction_type(tdl::Reducer reducer) {
  switch (reducer) {
    case tdl::Reducer::kMax:
      return "PartMax";
    case tdl::Reducer::kMin:
      return "PartMin";
    case tdl::Reducer::kProduct:
      return "PartProd";
    case tdl::Reducer::kSum:
      break;
  }
  return "PartSum";
}

class Lowering {
 public:
  Lowering(const Graph& graph, const Descriptions& descriptions, const Plan& plan,
           const std::vector<std::string>& devices)
      : graph_(graph),
        descriptions_(descriptions),
        plan_(plan),
        workers_(plan.workers),
        devices_(devices),
        builder_(graph.name(), graph.source()),
        values_(graph.num_tensors()) {
    EMPLACE_CHECK(devices.size() == workers_.count());
    EMPLACE_CHECK(plan.tensors.size() == graph.num_tensors() && plan.ops.size() == graph.num_ops());
  }

  LoweredGraph run() && {
    find_late_reductions();
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      op_ = op;
      if (graph_.is_source(op)) {
        add_source();
      } else if (adds_partial_[op] != 0) {
        add_partial_sum();
        computed_.push_back(op);
      } else {
        add_pieces();
        computed_.push_back(op);
      }
    }
    std::vector<KeptTensor> kept;
    for (Value& value : values_) {
      kept.push_back(
          {std::move(value.pieces), std::move(value.spread.regions), value.spread.partial()});
    }
    return {std::move(builder_).build(), std::move(worker_of_), std::move(kept), moved_};
  }

 private:
  // What every worker has of a tensor (or of an op's output).
  struct Value {
    Spread spread;
    std::vector<TensorId> pieces;  // by worker
    DType dtype = DType::kUnknown;
    OpId producer = 0;
  };

  Region whole(TensorId tensor) const {
    const auto shape = graph_.shape(tensor);
    return tdl::region_of({shape.begin(), shape.end()});
  }

  TensorId add_tensor(const Region& region, TensorId like) {
    if (!graph_.has_shape(like)) return builder_.add_tensor(spec_of_tensor(graph_, like));
    TensorSpec spec{.shape = shape_of(region), .dtype = graph_.dtype(like)};
    if (graph_.memory_bytes(like) != graph_.bytes(like)) {
      spec.memory_bytes = scaled(graph_.memory_bytes(like), share_of(region, like));
    }
    return builder_.add_tensor(spec);
  }

  std::string piece_name(OpId op, Worker worker) const {
    return fmt::format("{}@{}", graph_.op_name(op), worker);
  }

  void add_op(OpSpec spec, Worker worker) {
    spec.devices = {devices_[worker]};
    spec.colocate.clear();
    builder_.add_op(spec);
    worker_of_.push_back(worker);
    for (const TensorId tensor : spec.outputs) {
      home_.resize(std::max<std::size_t>(home_.size(), tensor + std::size_t{1}));
      home_[tensor] = worker;
    }
  }

  // An op that moves data for the present one.
  OpSpec mover(std::string_view type, Worker worker) {
    return {.name = fmt::format("{}@{}/{}{}", graph_.op_name(op_), worker, type, movers_++),
            .type = std::string(type),
            .phase = graph_.phase(op_) == Phase::kUpdate ? Phase::kBackward : graph_.phase(op_),
            .flops = 0,
            .bytes_moved = 0,
            .module = std::string(graph_.module(op_))};
  }

  void add_source() {
    for (const TensorId tensor : graph_.outputs(op_)) {
      Value& value = values_[tensor];
      value.spread = spread_of(whole(tensor), plan_.tensors[tensor], workers_);
      value.dtype = graph_.dtype(tensor);
      value.producer = op_;
      value.pieces.resize(workers_.count());
    }
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      OpSpec spec = spec_of_op(graph_, op_);
      spec.name = piece_name(op_, worker);
      double share = 1;
      for (const TensorId tensor : graph_.outputs(op_)) {
        Value& value = values_[tensor];
        const Region& region = value.spread.regions[worker];
        value.pieces[worker] = add_tensor(region, tensor);
        spec.outputs.push_back(value.pieces[worker]);
        if (!graph_.has_shape(tensor)) continue;
        spec.attributes.set("region_begin", begin_of(region));
        const auto shape = graph_.shape(tensor);
        spec.attributes.set("region_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
        share = share_of(region, tensor);
      }
      spec.persistent_bytes = scaled(spec.persistent_bytes, share);
      add_op(std::move(spec), worker);
    }
  }

  // A region's part of a tensor.
  double share_of(const Region& region, TensorId tensor) const {
    const auto elements = std::max<std::int64_t>(count_elements(graph_.shape(tensor)), 1);
    return static_cast<double>(volume(region)) / static_cast<double>(elements);
  }

  static std::int64_t scaled(std::int64_t amount, double share) {
    return static_cast<std::int64_t>(static_cast<double>(amount) * share + 0.5);
  }

  // Partial results that are only added to other partial results of the same kind are reduced after
  // the addition, as gradients of weights that several ops use are.
  void find_late_reductions() {
    reduced_late_.assign(graph_.num_tensors(), 0);
    adds_partial_.assign(graph_.num_ops(), 0);
    std::vector<Spread> partial(
        graph_.num_tensors());  // of those that are partial; others have none
    for (op_ = 0; op_ < graph_.num_ops(); ++op_) {
      if (graph_.is_source(op_)) continue;
      const auto inputs = graph_.inputs(op_);
      const auto outputs = graph_.outputs(op_);
      if (adds(inputs, partial)) {
        adds_partial_[op_] = 1;
        for (const TensorId tensor : inputs) reduced_late_[tensor] = 1;
        partial[outputs[0]] = partial[inputs[0]];
        continue;
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        Spread spread;
        spread.roles = roles_of(i);
        if (!spread.partial() || descriptions_[op_]->writes[i].reducer != tdl::Reducer::kSum)
          continue;
        for (Worker worker = 0; worker < workers_.count(); ++worker) {
          spread.regions.push_back(piece_at(worker).outputs[i]);
        }
        partial[outputs[i]] = std::move(spread);
      }
    }
  }

  // Whether the present op adds partial results that nothing else reads.
  bool adds(std::span<const TensorId> inputs, const std::vector<Spread>& partial) const {
    if ((graph_.type(op_) != "Add" && graph_.type(op_) != "Sum") || inputs.size() < 2) return false;
    const Spread& first = partial[inputs[0]];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Spread& other = partial[inputs[i]];
      if (other.regions.empty() || other.roles != first.roles || other.regions != first.regions ||
          graph_.consumers(inputs[i]).size() != 1 ||
          !std::ranges::equal(graph_.shape(inputs[i]), graph_.shape(graph_.outputs(op_)[0])) ||
          std::count(inputs.begin(), inputs.end(), inputs[i]) != 1) {
        return false;
      }
    }
    return true;
  }

  // Everybody adds what it has.
  void add_partial_sum() {
    const auto inputs = graph_.inputs(op_);
    const TensorId output = graph_.outputs(op_)[0];
    Value made;
    made.spread = values_[inputs[0]].spread;
    made.producer = op_;
    movers_ = 0;
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      OpSpec spec = spec_of_op(graph_, op_);
      spec.name = piece_name(op_, worker);
      const Region& region = made.spread.regions[worker];
      scale(spec, share_of(region, output));
      for (const OpId before : graph_.after(op_)) spec.after.push_back(piece_name(before, worker));
      for (const TensorId tensor : inputs) spec.inputs.push_back(values_[tensor].pieces[worker]);
      made.pieces.push_back(add_tensor(region, output));
      spec.outputs = {made.pieces.back()};
      add_op(std::move(spec), worker);
    }
    store(output, tdl::Reducer::kSum, std::move(made));
  }

  // The op's part of the work, as a fraction.
  static double share_of(const tdl::Description& description, const Region& box) {
    double share = 1;
    for (std::size_t v = 0; v < box.size(); ++v) {
      share *=
          static_cast<double>(box[v].size()) / static_cast<double>(description.variables[v].extent);
    }
    return share;
  }

  void scale(OpSpec& spec, double share) const {
    if (spec.flops) spec.flops = scaled(*spec.flops, share);
    if (spec.bytes_moved) spec.bytes_moved = scaled(*spec.bytes_moved, share);
    spec.temp_bytes = scaled(spec.temp_bytes, share);
    spec.persistent_bytes = scaled(spec.persistent_bytes, share);
    for (auto& [device, time] : spec.time_us) {
      time = Decimal::from_double(time.to_double() * share, 3);
    }
  }

  // Without a description everybody does all of it.
  tdl::Piece piece_at(Worker worker) const {
    const auto inputs = graph_.inputs(op_);
    const auto outputs = graph_.outputs(op_);
    const tdl::Description* description = descriptions_[op_];
    if (description == nullptr) {
      tdl::Piece piece;
      piece.attributes = graph_.attributes(op_);
      for (const TensorId tensor : inputs) piece.inputs.push_back(whole(tensor));
      for (const TensorId tensor : outputs) piece.outputs.push_back(whole(tensor));
      piece.reads.assign(inputs.size(), 1);
      return piece;
    }
    const auto shapes = [&](std::span<const TensorId> tensors) {
      std::vector<Shape> result;
      for (const TensorId tensor : tensors) {
        const auto shape = graph_.shape(tensor);
        result.emplace_back(shape.begin(), shape.end());
      }
      return result;
    };
    const Region box = part_of(variables_of(*description), plan_.ops[op_], workers_, worker);
    tdl::Piece piece =
        piece_of(*description, box, shapes(inputs), shapes(outputs), graph_.attributes(op_));
    if (!piece.valid) {
      fail_input("op '{}': the plan leaves worker {} without a part of it", graph_.op_name(op_),
                 worker);
    }
    return piece;
  }

  // Which of the op's output's levels are parts of it, partial results or the same for all.
  std::vector<LevelRole> roles_of(std::size_t output) const {
    std::vector<LevelRole> roles(workers_.levels(), LevelRole::kSame);
    const tdl::Description* description = descriptions_[op_];
    if (description == nullptr) return roles;
    for (std::size_t level = 0; level < roles.size(); ++level) {
      roles[level] = role_of_cut(*description, output, plan_.ops[op_][level]);
    }
    return roles;
  }

  void add_pieces() {
    const auto inputs = graph_.inputs(op_);
    const auto outputs = graph_.outputs(op_);
    std::vector<Value> made(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      made[i].spread.roles = roles_of(i);
      made[i].producer = op_;
    }
    movers_ = 0;
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      const tdl::Piece piece = piece_at(worker);
      OpSpec spec = spec_of_op(graph_, op_);
      spec.name = piece_name(op_, worker);
      spec.attributes = piece.attributes;
      draw_as_original(spec.attributes, spec.type, graph_.op_name(op_));
      if (descriptions_[op_] != nullptr) scale(spec, share_of(*descriptions_[op_], piece.box));
      for (const OpId before : graph_.after(op_)) spec.after.push_back(piece_name(before, worker));
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (piece.reads[i] == 0) continue;
        spec.inputs.push_back(fetch(inputs[i], worker, piece.inputs[i]));
      }
      // What was sent is in a buffer of its own, not what a view could show.
      if (spec.view && home_[spec.inputs[0]] != worker) spec.view = false;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        made[i].spread.regions.push_back(piece.outputs[i]);
        made[i].pieces.push_back(add_tensor(piece.outputs[i], outputs[i]));
        spec.outputs.push_back(made[i].pieces.back());
      }
      add_op(std::move(spec), worker);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const tdl::Description* description = descriptions_[op_];
      store(outputs[i], description == nullptr ? std::nullopt : description->writes[i].reducer,
            std::move(made[i]));
    }
  }

  // What the worker reads of a tensor.
  TensorId fetch(TensorId tensor, Worker worker, const Region& region) {
    const Value& value = values_[tensor];
    if (!graph_.has_shape(tensor)) return value.pieces[worker];
    const auto key = std::tuple(tensor, worker, begin_of(region), shape_of(region));
    const auto found = fetched_.find(key);
    if (found != fetched_.end() && op_ - found->second.second <= kReuse) return found->second.first;
    const TensorId result = assemble(value, tensor, worker, region, 0);
    if (result != value.pieces[worker]) fetched_[key] = {result, op_};
    return result;
  }

  // The region for the worker, of the value's n-th partial result: one tensor, which may lie
  // elsewhere and be sent when it is read, unless it is wanted `here`.
  TensorId assemble(const Value& value, TensorId like, Worker worker, const Region& region,
                    int partial, bool here = false) {
    if (is_empty(region)) return value.pieces[worker];
    const std::vector<Block> blocks = blocks_for(value.spread, workers_, worker, region, partial);
    EMPLACE_CHECK(!blocks.empty());
    std::vector<TensorId> parts;
    for (const Block& block : blocks) parts.push_back(slice(value, like, block, worker));
    if (parts.size() == 1 && (home_[parts[0]] == worker || !here)) return parts[0];
    OpSpec join = mover("PartJoin", worker);
    join.inputs = std::move(parts);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      join.attributes.set(fmt::format("begin_{}", i), begin_within(blocks[i].region, region));
    }
    join.outputs = {add_tensor(region, like)};
    join.bytes_moved = 2 * tensor_bytes(shape_of(region), graph_.dtype(like));
    const TensorId output = join.outputs[0];
    add_op(std::move(join), worker);
    return output;
  }

  // A block where it lies; whoever reads it elsewhere has it sent.
  TensorId slice(const Value& value, TensorId like, const Block& block, Worker to) {
    const Region& piece = value.spread.regions[block.from];
    const bool remote = block.from != to;
    if (remote) moved_ += tensor_bytes(shape_of(block.region), graph_.dtype(like));
    const std::string wait = remote ? wait_for(value.producer, to) : std::string();
    if (piece == block.region && wait.empty()) return value.pieces[block.from];
    // Those who wait for different pieces have slices of their own.
    const auto key = std::tuple(value.pieces[block.from], begin_of(block.region),
                                shape_of(block.region), remote, wait);
    if (slices_for_ != op_) slices_.clear();
    slices_for_ = op_;
    const auto [at, added] = slices_.try_emplace(key);
    if (!added) return at->second;
    OpSpec spec = mover("PartSlice", block.from);
    spec.view = true;
    spec.inputs = {value.pieces[block.from]};
    spec.outputs = {at->second = add_tensor(block.region, like)};
    spec.attributes = {{"begin", begin_within(block.region, piece)},
                       {"size", shape_of(block.region)}};
    if (!wait.empty()) spec.after = {wait};
    const TensorId output = at->second;
    add_op(std::move(spec), block.from);
    return output;
  }

  // The worker's piece that has to be done before it is sent what was made by the op; none for what
  // is made just before it is needed.
  std::string wait_for(OpId producer, Worker to) const {
    if (computed_.size() < kLookahead) return {};
    const OpId before = computed_[computed_.size() - kLookahead];
    return before > producer ? piece_name(before, to) : std::string();
  }

  // Keeps an output of the present op as the plan wants the tensor to be kept.
  void store(TensorId tensor, std::optional<tdl::Reducer> reducer, Value made) {
    Value& kept = values_[tensor];
    kept.dtype = graph_.dtype(tensor);
    kept.producer = op_;
    if (!graph_.has_shape(tensor) || reduced_late_[tensor] != 0) {
      kept.spread = std::move(made.spread);
      kept.pieces = std::move(made.pieces);
      return;
    }
    if (made.spread.partial()) {
      const Cuts cuts = cuts_for_reduction(whole(tensor), plan_.tensors[tensor], workers_);
      EMPLACE_CHECK(reducer.has_value());
      made = reduce(tensor, *reducer, made, spread_of(whole(tensor), cuts, workers_));
    }
    kept.spread = spread_of(whole(tensor), plan_.tensors[tensor], workers_);
    kept.pieces.resize(workers_.count());
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      kept.pieces[worker] = assemble(made, tensor, worker, kept.spread.regions[worker], 0, true);
    }
  }

  Value reduce(TensorId tensor, tdl::Reducer reducer, const Value& made, Spread spread) {
    const int parts = made.spread.partial_count(workers_);
    Value result;
    result.producer = op_;
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      const Region& region = spread.regions[worker];
      std::vector<TensorId> inputs;
      for (int part = 0; part < parts; ++part) {
        inputs.push_back(assemble(made, tensor, worker, region, part));
      }
      OpSpec spec = mover(reduction_type(reducer), worker);
      spec.inputs = std::move(inputs);
      spec.outputs = {add_tensor(region, tensor)};
      spec.flops = saturating_multiply(parts - 1, volume(region));
      spec.bytes_moved = (parts + 1) * tensor_bytes(shape_of(region), graph_.dtype(tensor));
      result.pieces.push_back(spec.outputs[0]);
      add_op(std::move(spec), worker);
    }
    result.spread = std::move(spread);
    return result;
  }

  using RegionKey = std::tuple<TensorId, Worker, std::vector<std::int64_t>, Shape>;
  using SliceKey = std::tuple<TensorId, std::vector<std::int64_t>, Shape, bool, std::string>;

  const Graph& graph_;
  const Descriptions& descriptions_;
  const Plan& plan_;
  const Workers& workers_;
  const std::vector<std::string>& devices_;
  GraphBuilder builder_;
  std::vector<Value> values_;               // by tensor
  std::vector<std::uint8_t> reduced_late_;  // by tensor: stays partial until it was added to others
  std::vector<std::uint8_t> adds_partial_;  // by op: adds such
  std::vector<Worker> worker_of_;
  std::vector<Worker> home_;  // by lowered tensor
  Bytes moved_ = 0;
  OpId op_ = 0;                 // the present one
  std::size_t movers_ = 0;      // of it
  std::vector<OpId> computed_;  // ops that are no sources, so far
  std::map<RegionKey, std::pair<TensorId, OpId>> fetched_;
  std::map<SliceKey, TensorId> slices_;  // for the present op
  OpId slices_for_ = 0;
};

}  // namespace

LoweredGraph lower(const Graph& graph, const Descriptions& descriptions, const Plan& plan,
                   const std::vector<std::string>& devices) {
  return Lowering(graph, descriptions, plan, devices).run();
}

}  // namespace emplace
