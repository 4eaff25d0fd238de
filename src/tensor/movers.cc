// Invariant: every tensor that is made here lies on one worker (home_) and holds one region of one
// tensor of the original graph. What is read on another worker is sent there, once for all readers.
//
// Reductions and gatherings of many go in stages (tensor/network.h). A reduction begins with the
// innermost levels: after each stage a worker has, of the groups that it was reduced in, the sums
// of the regions that it and its counterparts in other groups are to have in the end. So what goes
// between machines was added up within them. A gathering is the same the other way round: between
// machines everybody fetches what its counterparts have, then all exchange that within.
//
// A block waits for the op that its reader runs 8 ops earlier (Tofu's control dependencies, Wang,
// Huang, Li, EuroSys 2019). Rings and recursive halving are those of Thakur, Rabenseifner, Gropp,
// "Optimization of Collective Communication Operations in MPICH", 2005.
#include "tensor/movers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/limits.h"

#include "graph/copy.h"
#include "graph/tensor_type.h"

namespace emplace {
namespace {

using tdl::Region;

// A block is sent when the worker that wants it has come this near to needing it, in ops.
constexpr std::size_t kLookahead = 8;

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

// The n-th of so many parts, along the longest dimension; may be empty.
Region part_along_longest(Region region, int part, int parts) {
  if (parts == 1 || region.empty()) return region;
  const auto longest = std::max_element(
      region.begin(), region.end(),
      [](const tdl::Interval& a, const tdl::Interval& b) { return a.size() < b.size(); });
  const tdl::Interval all = *longest;
  *longest = {all.begin + all.size() * part / parts, all.begin + all.size() * (part + 1) / parts};
  return region;
}

}  // namespace

std::string piece_name(const Graph& graph, OpId op, Worker worker) {
  return fmt::format("{}@{}", graph.op_name(op), worker);
}

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

double share_of(const Graph& graph, const Region& region, TensorId tensor) {
  const auto elements = std::max<std::int64_t>(count_elements(graph.shape(tensor)), 1);
  return static_cast<double>(volume(region)) / static_cast<double>(elements);
}

std::int64_t scaled(std::int64_t amount, double share) {
  return static_cast<std::int64_t>(static_cast<double>(amount) * share + 0.5);
}

Movers::Movers(const Graph& graph, const Workers& workers, const std::vector<std::string>& devices,
               Network* network)
    : graph_(graph),
      workers_(workers),
      devices_(devices),
      network_(network),
      builder_(graph.name(), graph.source()) {}

void Movers::begin(OpId op) {
  op_ = op;
  movers_ = 0;
  updated_ = false;
  slices_.clear();
}

TensorId Movers::add_tensor(const Region& region, TensorId like) {
  if (!graph_.has_shape(like)) return builder_.add_tensor(spec_of_tensor(graph_, like));
  TensorSpec spec{.shape = shape_of(region), .dtype = graph_.dtype(like)};
  if (graph_.memory_bytes(like) != graph_.bytes(like)) {
    spec.memory_bytes = scaled(graph_.memory_bytes(like), share_of(graph_, region, like));
  }
  return builder_.add_tensor(spec);
}

void Movers::add_op(OpSpec spec, Worker worker) {
  if (worker_of_.size() >= limits::kDividedOps) {
    throw TooManyPieces(
        ErrorKind::kUnsupported,
        fmt::format("graph '{}', op '{}': divided among {} devices, the graph would have more than "
                    "{} ops; expected fewer devices, or a smaller model",
                    graph_.name(), graph_.op_name(op_), workers_.count(), limits::kDividedOps));
  }
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
OpSpec Movers::mover(std::string_view type, Worker worker) {
  Phase phase = graph_.phase(op_);
  if (phase == Phase::kUpdate && !updated_) phase = Phase::kBackward;
  return {.name = fmt::format("{}@{}/{}{}", graph_.op_name(op_), worker, type, movers_++),
          .type = std::string(type),
          .phase = phase,
          .flops = 0,
          .bytes_moved = 0,
          .module = std::string(graph_.module(op_))};
}

Bytes Movers::bytes_of(const Region& region, TensorId like) const {
  return tensor_bytes(shape_of(region), graph_.dtype(like));
}

// The worker's piece that has to be done before it is sent what was made by the op; none for what
// is made just before it is needed.
std::string Movers::wait_for(OpId producer, Worker to) const {
  if (computed_.size() < kLookahead) return {};
  const OpId before = computed_[computed_.size() - kLookahead];
  return before > producer ? piece_name(graph_, before, to) : std::string();
}

// A tensor that lies elsewhere as it is to be sent: where that was measured, it counts as many
// bytes as take the measured time on the link.
TensorId Movers::sent(TensorId tensor, const Region& region, TensorId like, Worker to) {
  const Worker from = home_[tensor];
  if (from == to || stretch_ == 1) return tensor;
  const Network::Link& link = network_->link(from, to);
  const Bytes size = bytes_of(region, like);
  const double time =
      stretch_ * (link.ns_per_transfer + link.ns_per_byte * static_cast<double>(size));
  OpSpec spec = mover("PartSlice", from);
  spec.view = true;
  spec.inputs = {tensor};
  spec.outputs = {
      builder_.add_tensor({.shape = shape_of(region),
                           .dtype = graph_.dtype(like),
                           .sent_bytes = static_cast<Bytes>(std::max(
                               0.0, (time - link.ns_per_transfer) / link.ns_per_byte + 0.5))})};
  spec.attributes = {{"begin", begin_within(region, region)}, {"size", shape_of(region)}};
  const TensorId output = spec.outputs[0];
  add_op(std::move(spec), from);
  return output;
}

// A block where it lies; whoever reads it elsewhere has it sent.
TensorId Movers::slice(const Value& value, TensorId like, const Block& block, Worker to) {
  const Region& piece = value.spread.regions[block.from];
  const bool remote = block.from != to;
  if (remote) moved_ += bytes_of(block.region, like);
  const std::string wait = remote ? wait_for(value.producer, to) : std::string();
  if (piece == block.region && wait.empty()) {
    return sent(value.pieces[block.from], block.region, like, to);
  }
  // Those who wait for different pieces have slices of their own.
  const auto key = std::tuple(value.pieces[block.from], begin_of(block.region),
                              shape_of(block.region), remote, wait);
  const auto [at, added] = slices_.try_emplace(key);
  if (!added) return sent(at->second, block.region, like, to);
  OpSpec spec = mover("PartSlice", block.from);
  spec.view = true;
  spec.inputs = {value.pieces[block.from]};
  spec.outputs = {at->second = add_tensor(block.region, like)};
  spec.attributes = {{"begin", begin_within(block.region, piece)},
                     {"size", shape_of(block.region)}};
  if (!wait.empty()) spec.after = {wait};
  const TensorId output = at->second;
  add_op(std::move(spec), block.from);
  return sent(output, block.region, like, to);
}

TensorId Movers::join(std::vector<TensorId> parts, const std::vector<Region>& blocks,
                      const Region& region, TensorId like, Worker worker) {
  OpSpec spec = mover("PartJoin", worker);
  spec.inputs = std::move(parts);
  Bytes own = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    spec.attributes.set(fmt::format("begin_{}", i), begin_within(blocks[i], region));
    if (home_[spec.inputs[i]] == worker) own += bytes_of(blocks[i], like);
  }
  spec.outputs = {add_tensor(region, like)};
  // One kernel writes all blocks where they belong (Tofu's MultiFetch): others' as they arrive, so
  // that reading and writing take time for the worker's own alone.
  spec.bytes_moved = 2 * own;
  const TensorId output = spec.outputs[0];
  add_op(std::move(spec), worker);
  return output;
}

TensorId Movers::sum(std::vector<TensorId> inputs, const Region& region, TensorId like,
                     tdl::Reducer reducer, Worker worker) {
  const auto parts = std::ssize(inputs);
  OpSpec spec = mover(reduction_type(reducer), worker);
  spec.inputs = std::move(inputs);
  spec.outputs = {add_tensor(region, like)};
  if (stretch_ == 1) {  // else that was measured, too
    spec.flops = saturating_multiply(parts - 1, volume(region));
    spec.bytes_moved = (parts + 1) * bytes_of(region, like);
  }
  const TensorId output = spec.outputs[0];
  add_op(std::move(spec), worker);
  return output;
}

TensorId Movers::assemble(const Value& value, TensorId like, Worker worker, const Region& region,
                          int partial, bool here) {
  if (is_empty(region)) return value.pieces[worker];
  const std::vector<Block> blocks = blocks_for(value.spread, workers_, worker, region, partial);
  EMPLACE_CHECK(!blocks.empty());
  std::vector<TensorId> parts;
  std::vector<Region> regions;
  for (const Block& block : blocks) {
    parts.push_back(slice(value, like, block, worker));
    regions.push_back(block.region);
  }
  if (parts.size() == 1 && (home_[parts[0]] == worker || !here)) return parts[0];
  return join(std::move(parts), regions, region, like, worker);
}

TensorId Movers::tensor_at(const Value& value, TensorId like, const Held& held, Worker to) {
  stretch_ = held.stretch;
  TensorId result = 0;
  if (held.tensor) {
    if (held.at != to) moved_ += bytes_of(held.region, like);
    result = sent(*held.tensor, held.region, like, to);
  } else {
    result = slice(value, like, {held.at, held.region}, to);
  }
  stretch_ = 1;
  return result;
}

// A copy on the worker, which others can be sent.
Movers::Held Movers::relay(const Value& value, TensorId like, const Held& held, Worker to) {
  return {held.region, to,
          join({tensor_at(value, like, held, to)}, {held.region}, held.region, like, to)};
}

// Everybody gets what those along the stage's levels have. What comes last is not passed on, so it
// is put together where it is needed.
void Movers::exchange(const Value& value, TensorId like, const Stage& stage, bool last,
                      Holdings& held) {
  const Holdings before = held;
  const int rounds = stage.ring ? workers_.group_size(stage.levels) - 1 : 1;
  Holdings passed = before;
  for (int round = 0; round < rounds; ++round) {
    const bool kept_here = last && round == rounds - 1;
    Holdings received(workers_.count());
    for (Worker to = 0; to < workers_.count(); ++to) {
      const std::vector<Worker> group = workers_.group_of(to, stage.levels);
      const auto take = [&](const std::vector<Held>& from) {
        for (Held each : from) {
          each.stretch = stage.stretch;
          received[to].push_back(kept_here ? each : relay(value, like, each, to));
        }
      };
      if (stage.ring) {
        take(passed[neighbour_before(group, to)]);
        continue;
      }
      for (const Worker from : group) {
        if (from != to) take(before[from]);
      }
    }
    for (Worker to = 0; to < workers_.count(); ++to) {
      held[to].insert(held[to].end(), received[to].begin(), received[to].end());
    }
    passed = std::move(received);
  }
}

std::optional<std::vector<TensorId>> Movers::gather(const Value& value, TensorId like,
                                                    const std::vector<Region>& needed) {
  if (network_ == nullptr) return std::nullopt;
  const LevelSet levels = network_->levels_to_gather(needed, value.spread);
  if (levels == 0) return std::nullopt;
  const std::vector<Stage>& stages =
      network_->stages(levels, bytes_of(needed[0], like), Exchange::kGather);
  if (stages.size() == 1 && !stages[0].ring && !stages[0].measured) return std::nullopt;
  LevelSet same = 0;
  for (std::size_t level = 0; level < workers_.levels(); ++level) {
    if (has_level(levels, level) && value.spread.roles[level] == LevelRole::kSame) {
      same |= level_set(level);
    }
  }
  Holdings held(workers_.count());
  for (Worker worker = 0; worker < workers_.count(); ++worker) {
    const std::vector<Worker> alike = workers_.group_of(worker, same);
    const auto at = std::find(alike.begin(), alike.end(), worker) - alike.begin();
    const Region own = intersect(value.spread.regions[worker], needed[worker]);
    if (is_empty(own)) continue;
    const Region part =
        part_along_longest(own, static_cast<int>(at), static_cast<int>(alike.size()));
    if (!is_empty(part)) held[worker].push_back({part, worker, std::nullopt});
  }
  for (const Stage& stage : stages) {
    exchange(value, like, stage, &stage == &stages.back(), held);
  }
  std::vector<TensorId> result;
  for (Worker worker = 0; worker < workers_.count(); ++worker) {
    std::vector<TensorId> parts;
    std::vector<Region> regions;
    for (const Held& each : held[worker]) {
      parts.push_back(tensor_at(value, like, each, worker));
      regions.push_back(each.region);
    }
    result.push_back(join(std::move(parts), regions, needed[worker], like, worker));
  }
  return result;
}

// What the worker adds to the sum of a region: its own partial result, or what it has of earlier
// stages.
TensorId Movers::contribution(const Reduction& reduction, Worker at, const Region& region) {
  if (reduction.first) return assemble(reduction.made, reduction.like, at, region, 0, true);
  const auto& sums = reduction.sums[at];
  const auto found =
      std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first == region; });
  EMPLACE_CHECK(found != sums.end());
  return found->second;
}

TensorId Movers::sum_directly(const Reduction& reduction, const std::vector<Worker>& group,
                              Worker worker, const Region& region) {
  std::vector<TensorId> inputs;
  if (reduction.first) {
    for (int part = 0; part < std::ssize(group); ++part) {
      inputs.push_back(assemble(reduction.made, reduction.like, worker, region, part));
    }
  } else {
    for (const Worker from : group) {
      const TensorId own = contribution(reduction, from, region);
      count_sent(own, region, reduction.like, worker);
      inputs.push_back(sent(own, region, reduction.like, worker));
    }
  }
  return sum(std::move(inputs), region, reduction.like, reduction.reducer, worker);
}

// From the next neighbour all the way round to the worker.
TensorId Movers::sum_around(const Reduction& reduction, const std::vector<Worker>& group,
                            Worker worker, const Region& region) {
  const auto own =
      static_cast<std::size_t>(std::find(group.begin(), group.end(), worker) - group.begin());
  TensorId so_far = contribution(reduction, group[(own + 1) % group.size()], region);
  for (std::size_t hop = 2; hop <= group.size(); ++hop) {
    const Worker at = group[(own + hop) % group.size()];
    const TensorId mine = contribution(reduction, at, region);
    count_sent(so_far, region, reduction.like, at);
    so_far = sum({so_far, mine}, region, reduction.like, reduction.reducer, at);
  }
  return so_far;
}

Value Movers::reduce(TensorId like, tdl::Reducer reducer, const Value& made, Spread spread) {
  const LevelSet partial = made.spread.partial_levels();
  std::vector<Stage> stages{{partial, false}};
  if (network_ != nullptr && !network_->is_flat()) {
    stages = network_->stages(partial, bytes_of(made.spread.regions[0], like), Exchange::kReduce);
    std::reverse(stages.begin(), stages.end());
  }
  Reduction reduction{like, reducer, made, true, Sums(workers_.count())};
  LevelSet later = partial;
  for (const Stage& stage : stages) {
    later &= ~stage.levels;
    stretch_ = stage.stretch;
    Sums next(workers_.count());
    for (Worker worker = 0; worker < workers_.count(); ++worker) {
      const std::vector<Worker> group = workers_.group_of(worker, stage.levels);
      for (const Worker counterpart : workers_.group_of(worker, later)) {
        const Region& region = spread.regions[counterpart];
        const auto is_known = [&](const auto& sum) { return sum.first == region; };
        if (std::any_of(next[worker].begin(), next[worker].end(), is_known)) continue;
        next[worker].emplace_back(region, stage.ring
                                              ? sum_around(reduction, group, worker, region)
                                              : sum_directly(reduction, group, worker, region));
      }
    }
    reduction.sums = std::move(next);
    reduction.first = false;
  }
  stretch_ = 1;
  Value result;
  result.producer = op_;
  for (const auto& sums : reduction.sums) result.pieces.push_back(sums.front().second);
  result.spread = std::move(spread);
  return result;
}

void Movers::share_changes(const Value& weight, TensorId like, const Spread& changed) {
  updated_ = true;
  Value value{.spread = changed, .pieces = {}, .producer = op_};
  for (Worker worker = 0; worker < workers_.count(); ++worker) {
    const Region& region = changed.regions[worker];
    OpSpec spec = mover("PartSlice", worker);
    spec.view = true;
    spec.inputs = {weight.pieces[worker]};
    spec.outputs = {add_tensor(region, like)};
    spec.attributes = {{"begin", begin_within(region, weight.spread.regions[worker])},
                       {"size", shape_of(region)}};
    spec.after = {piece_name(graph_, op_, worker)};
    value.pieces.push_back(spec.outputs[0]);
    add_op(std::move(spec), worker);
  }
  const auto together = gather(value, like, weight.spread.regions);
  for (Worker worker = 0; worker < workers_.count(); ++worker) {
    const Region& own = weight.spread.regions[worker];
    OpSpec spec = mover("PartStore", worker);
    spec.inputs = {weight.pieces[worker]};
    if (together) {
      spec.inputs.push_back((*together)[worker]);
      spec.attributes.set("begin_1", begin_within(own, own));
      spec.bytes_moved = 2 * bytes_of(own, like);
    } else {
      for (const Block& block : blocks_for(changed, workers_, worker, own)) {
        if (block.from == worker) continue;
        spec.attributes.set(fmt::format("begin_{}", spec.inputs.size()),
                            begin_within(block.region, own));
        spec.inputs.push_back(slice(value, like, block, worker));
      }
    }
    if (spec.inputs.size() > 1) add_op(std::move(spec), worker);
  }
}

void Movers::count_sent(TensorId tensor, const Region& region, TensorId like, Worker to) {
  if (home_[tensor] != to) moved_ += bytes_of(region, like);
}

}  // namespace emplace
