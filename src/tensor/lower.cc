// Op by op, in order. Invariant: values_ says for every tensor so far which region each worker has,
// in which lowered tensor, and whether that is a partial result; once an op's outputs are stored
// they lie as the plan wants, save for partial sums that are reduced later. A piece reads exactly
// the region that the description says it touches; blocks that lie elsewhere are sliced there,
// sent, and joined where they are read. So the lowered graph computes the same, which tests check
// by running both in an interpreter; sums are in another order.
//
// Not the least traffic possible: a block is taken from the nearest worker that has it, one read at
// a time; what many need of many goes in stages where that is sooner (tensor/movers.h). What was
// fetched is used again within 16 ops, and not kept longer, as it takes memory, unless the plan
// says so. Partial sums that are only added to each other are reduced after the addition, once.
//
// Flops, bytes and measured times of a piece are the op's, times its share of the variables' box.
// O(ops * workers * (inputs * blocks)) pieces and movers.
#include "tensor/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/error.h"

#include "graph/copy.h"

#include "tensor/movers.h"
#include "tensor/piece_spec.h"

namespace emplace {
namespace {

using tdl::Region;

// What was fetched for one op serves those that follow it this closely.
constexpr OpId kReuse = 16;

class Lowering {
 public:
  Lowering(const Graph& graph, const Descriptions& descriptions, const Plan& plan,
           const std::vector<std::string>& devices, Network* network)
      : graph_(graph),
        descriptions_(descriptions),
        plan_(plan),
        workers_(plan.workers),
        network_(network),
        movers_(graph, plan.workers, devices, network),
        values_(graph.num_tensors()) {
    EMPLACE_CHECK(devices.size() == workers_.count());
    EMPLACE_CHECK(plan.tensors.size() == graph.num_tensors() && plan.ops.size() == graph.num_ops());
  }

  LoweredGraph run() && {
    find_late_reductions();
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      op_ = op;
      movers_.begin(op);
      if (graph_.is_source(op)) {
        add_source();
      } else if (adds_partial_[op] != 0) {
        add_partial_sum();
        movers_.end(op);
      } else {
        add_pieces();
        movers_.end(op);
      }
    }
    std::vector<KeptTensor> kept;
    for (Value& value : values_) {
      kept.push_back(
          {std::move(value.pieces), std::move(value.spread.regions), value.spread.partial()});
    }
    const Bytes moved = movers_.moved();
    std::vector<Worker> worker_of = std::move(movers_).take_workers();
    return {std::move(movers_).take_graph(), std::move(worker_of), std::move(kept), moved};
  }

 private:
  Region whole(TensorId tensor) const {
    const auto shape = graph_.shape(tensor);
    return tdl::region_of({shape.begin(), shape.end()});
  }

  void add_source() {
    for (const TensorId tensor : graph_.outputs(op_)) {
      Value& value = values_[tensor];
      value.spread = spread_of(whole(tensor), plan_.tensors[tensor], workers_);
      value.producer = op_;
      value.pieces.resize(workers_.count());
    }
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      OpSpec spec = spec_of_op(graph_, op_);
      spec.name = piece_name(graph_, op_, worker);
      double share = 1;
      for (const TensorId tensor : graph_.outputs(op_)) {
        Value& value = values_[tensor];
        const Region& region = value.spread.regions[worker];
        value.pieces[worker] = movers_.add_tensor(region, tensor);
        spec.outputs.push_back(value.pieces[worker]);
        if (!graph_.has_shape(tensor)) continue;
        spec.attributes.set("region_begin", begin_of(region));
        const auto shape = graph_.shape(tensor);
        spec.attributes.set("region_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
        share = share_of(graph_, region, tensor);
      }
      spec.persistent_bytes = scaled(spec.persistent_bytes, share);
      movers_.add_op(std::move(spec), worker);
    }
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
          spread.regions.push_back(pieces()[worker].outputs[i]);
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
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      OpSpec spec = spec_of_op(graph_, op_);
      spec.name = piece_name(graph_, op_, worker);
      const Region& region = made.spread.regions[worker];
      scale(spec, share_of(graph_, region, output));
      for (const OpId before : graph_.after(op_))
        spec.after.push_back(piece_name(graph_, before, worker));
      for (const TensorId tensor : inputs) spec.inputs.push_back(values_[tensor].pieces[worker]);
      made.pieces.push_back(movers_.add_tensor(region, output));
      spec.outputs = {made.pieces.back()};
      movers_.add_op(std::move(spec), worker);
    }
    store(output, tdl::Reducer::kSum, std::move(made));
  }

  // Of the present op, by worker. Ops that are alike and cut alike share them.
  const std::vector<tdl::Piece>& pieces() {
    const std::uint32_t signature = descriptions_.signature(op_);
    const auto [at, added] = pieces_.try_emplace({signature, plan_.ops[op_]});
    if (!added && signature != 0) return at->second;
    std::vector<tdl::Piece> made;
    for (Worker worker = 0; worker < workers_.count(); ++worker) made.push_back(piece_at(worker));
    return at->second = std::move(made);
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
    const std::vector<tdl::Piece>& pieces = this->pieces();
    for (std::size_t i = 0; i < inputs.size(); ++i) fetch_together(inputs[i], i, pieces);
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      const tdl::Piece& piece = pieces[worker];
      OpSpec spec = spec_of_piece(graph_, op_, descriptions_[op_], piece);
      spec.name = piece_name(graph_, op_, worker);
      for (const OpId before : graph_.after(op_))
        spec.after.push_back(piece_name(graph_, before, worker));
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (piece.reads[i] == 0) continue;
        spec.inputs.push_back(fetch(inputs[i], worker, piece.inputs[i]));
      }
      // What was sent is in a buffer of its own, not what a view could show.
      if (spec.view && movers_.home(spec.inputs[0]) != worker) spec.view = false;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        made[i].spread.regions.push_back(piece.outputs[i]);
        made[i].pieces.push_back(movers_.add_tensor(piece.outputs[i], outputs[i]));
        spec.outputs.push_back(made[i].pieces.back());
      }
      movers_.add_op(std::move(spec), worker);
    }
    const bool changes =
        graph_.phase(op_) == Phase::kUpdate && graph_.type(op_) != "AccumulateGrad";
    if (changes && descriptions_[op_] != nullptr) {
      for (std::size_t i = 0; i < inputs.size(); ++i) share_changes(inputs[i], i, pieces);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const tdl::Description* description = descriptions_[op_];
      store(outputs[i], description == nullptr ? std::nullopt : description->writes[i].reducer,
            std::move(made[i]));
    }
  }

  // An update works where the weight is; where it is divided further, others get what it changed.
  void share_changes(TensorId tensor, std::size_t input, const std::vector<tdl::Piece>& pieces) {
    if (graph_.role(graph_.producer(tensor)) != OpRole::kParameter) return;
    const Value& weight = values_[tensor];
    Spread changed;
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      changed.regions.push_back(pieces[worker].inputs[input]);
      if (!contains(weight.spread.regions[worker], changed.regions.back())) {
        fail_input("op '{}': the plan lets worker {} change weights that it does not keep",
                   graph_.op_name(op_), worker);
      }
    }
    if (changed.regions == weight.spread.regions) return;
    changed.roles = roles_without_sums(plan_.ops[op_]);
    movers_.share_changes(weight, tensor, changed);
  }

  // What all workers read of a tensor, where they had better fetch it together.
  void fetch_together(TensorId tensor, std::size_t input, const std::vector<tdl::Piece>& pieces) {
    if (!graph_.has_shape(tensor)) return;
    std::vector<Region> needed;
    for (const tdl::Piece& piece : pieces) {
      if (piece.reads[input] == 0) return;
      needed.push_back(piece.inputs[input]);
      if (was_fetched(tensor, static_cast<Worker>(needed.size() - 1), needed.back())) return;
    }
    const auto together = movers_.gather(values_[tensor], tensor, needed);
    for (Worker worker = 0; together && worker < workers_.count(); ++worker) {
      fetched_[key_of(tensor, worker, needed[worker])] = {(*together)[worker], op_};
    }
  }

  // What the worker reads of a tensor.
  TensorId fetch(TensorId tensor, Worker worker, const Region& region) {
    const Value& value = values_[tensor];
    if (!graph_.has_shape(tensor)) return value.pieces[worker];
    if (const auto found = was_fetched(tensor, worker, region)) return *found;
    const TensorId result = movers_.assemble(value, tensor, worker, region, 0);
    if (result != value.pieces[worker]) fetched_[key_of(tensor, worker, region)] = {result, op_};
    return result;
  }

  using RegionKey = std::tuple<TensorId, Worker, std::vector<std::int64_t>, Shape>;
  static RegionKey key_of(TensorId tensor, Worker worker, const Region& region) {
    return {tensor, worker, begin_of(region), shape_of(region)};
  }

  std::optional<TensorId> was_fetched(TensorId tensor, Worker worker, const Region& region) const {
    const auto found = fetched_.find(key_of(tensor, worker, region));
    if (found == fetched_.end()) return std::nullopt;
    if (!plan_.holds(tensor) && op_ - found->second.second > kReuse) return std::nullopt;
    return found->second.first;
  }

  // Keeps an output of the present op as the plan wants the tensor to be kept.
  void store(TensorId tensor, std::optional<tdl::Reducer> reducer, Value made) {
    Value& kept = values_[tensor];
    kept.producer = op_;
    if (!graph_.has_shape(tensor) || reduced_late_[tensor] != 0) {
      kept.spread = std::move(made.spread);
      kept.pieces = std::move(made.pieces);
      return;
    }
    if (made.spread.partial()) {
      const LevelSet among =
          network_ != nullptr ? network_->levels_to_reduce(made.spread) : ~LevelSet{0};
      const Cuts cuts = cuts_for_reduction(whole(tensor), plan_.tensors[tensor], workers_, among);
      EMPLACE_CHECK(reducer.has_value());
      made = movers_.reduce(tensor, *reducer, made, spread_of(whole(tensor), cuts, workers_));
    }
    kept.spread = spread_of(whole(tensor), plan_.tensors[tensor], workers_);
    if (auto together = movers_.gather(made, tensor, kept.spread.regions)) {
      kept.pieces = std::move(*together);
      return;
    }
    kept.pieces.resize(workers_.count());
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      kept.pieces[worker] =
          movers_.assemble(made, tensor, worker, kept.spread.regions[worker], 0, true);
    }
  }

  const Graph& graph_;
  const Descriptions& descriptions_;
  const Plan& plan_;
  const Workers& workers_;
  const Network* network_;  // nullptr: everything goes straight
  Movers movers_;
  std::vector<Value> values_;               // by tensor
  std::vector<std::uint8_t> reduced_late_;  // by tensor: stays partial until it was added to others
  std::vector<std::uint8_t> adds_partial_;  // by op: adds such
  OpId op_ = 0;                             // the present one
  std::map<std::pair<std::uint32_t, Cuts>, std::vector<tdl::Piece>> pieces_;  // by signature
  std::map<RegionKey, std::pair<TensorId, OpId>> fetched_;
};

}  // namespace

LoweredGraph lower(const Graph& graph, const Descriptions& descriptions, const Plan& plan,
                   const std::vector<std::string>& devices, Network* network) {
  return Lowering(graph, descriptions, plan, devices, network).run();
}

}  // namespace emplace
