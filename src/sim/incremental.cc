// What moves concern, and the segments between. A moved op changes nothing before the instant at
// which it was ready in the base run, nor does a tensor that it makes or reads before the producer
// finished: so the candidate's run is the base's until the first of these instants, where it
// begins. When the loop is back in step (incremental_engine.h) it is the base's again, shifted in
// time, up to the next concern, and the segment between is passed over; only memory must be looked
// at there, as the moved groups' own bytes lie elsewhere (incremental_memory.h). Exact: equal to a
// full simulation, which tests compare move by move.
//
// With a limit, a run ends as soon as a node's finish and the longest way on from it (`rest`, by
// the base placement once all moved ops have started, before that on whatever devices are fastest)
// show that the step will not be below. Time is looked at before memory, as most candidates lose by
// it. A base costs about two simulations; a candidate costs what it simulates, and for each segment
// after a gap what is queued and running there. Ours.
#include "sim/incremental.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"

#include "sim/incremental_engine.h"
#include "sim/incremental_memory.h"
#include "sim/incremental_tables.h"
#include "sim/incremental_workspace.h"
#include "sim/program.h"

namespace emplace {
namespace {

constexpr Evaluation kNoLimit{std::numeric_limits<Nanoseconds>::max(),
                              std::numeric_limits<Bytes>::max()};

}  // namespace

class IncrementalSimulator::Run {
 public:
  explicit Run(std::shared_ptr<const Simulator> simulator)
      : simulator_(std::move(simulator)),
        problem_(simulator_->problem()),
        p_(simulator_->program()),
        t_(p_, problem_),
        w_(p_, t_),
        memory_(p_, t_, w_),
        target_(problem_.num_groups(), {0, kNoDevice}) {}

  Evaluation set_base(const Placement& placement, const ReadyOrder& order) {
    EMPLACE_CHECK(placement.size() == problem_.num_ops());
    order_ = order;
    placement_ = placement;
    return record();
  }

  Evaluation accept(std::span<const Move> moves) {
    for (const Move& move : moves) {
      for (const OpId op : problem_.group_ops(move.group)) placement_[op] = move.device;
    }
    return record();
  }

  Evaluation evaluate(std::span<const Move> moves, const std::optional<Evaluation>& cutoff) {
    EMPLACE_CHECK(has_base_);
    gather(moves);
    if (moved_groups_.empty()) return base_;
    const Evaluation result = evaluate_gathered(cutoff ? *cutoff : kNoLimit);
    for (const std::uint32_t node : moved_nodes_) {
      w_.nodes[node].device = placement_[p_.op_of_node[node]];
      w_.nodes[node].moved = false;
    }
    return result;
  }

  const Placement& placement() const { return placement_; }
  std::int64_t simulated_ops() const { return w_.simulated; }
  const Evaluation& base() const { return base_; }

  OpSpan span(OpId op) const {
    const auto& node = w_.nodes[p_.node_of_op[op]];
    const Nanoseconds finish = w_.instants[node.finish].time;
    // A folded view starts and finishes when the op that it is folded into finishes.
    if (p_.op_of_node[p_.node_of_op[op]] != op) return {finish, finish};
    return {w_.instants[node.start].time, finish};
  }

  Nanoseconds ready_time(OpId op) const {
    const auto& node = w_.nodes[p_.node_of_op[op]];
    const bool folded = p_.op_of_node[p_.node_of_op[op]] != op;
    return w_.instants[folded ? node.finish : node.ready].time;
  }

 private:
  // Calls `body` with the constants that say which engine is needed.
  template <class Body>
  Evaluation with_mode(bool memory, Body body) {
    const auto yes = std::true_type{};
    const auto no = std::false_type{};
    if (order_.fifo()) return memory ? body(yes, yes) : body(yes, no);
    return memory ? body(no, yes) : body(no, no);
  }

  Evaluation record() {
    w_.clear_record();
    for (std::uint32_t node = 0; node < p_.num_nodes(); ++node)
      w_.nodes[node].device = placement_[p_.op_of_node[node]];
    memory_.set_base(placement_);
    base_ = with_mode(t_.memory_matters, [this](auto fifo, auto memory) {
      MoveEngine<MoveMode{fifo, memory, true}> engine(p_, t_, w_, order_);
      engine.begin();
      engine.run();
      return Evaluation{engine.step(), w_.overflow};
    });
    w_.num_base_transfers = static_cast<std::uint32_t>(w_.transfers.size());
    w_.profile.close();
    rest_.clear();
    has_base_ = true;
    return base_;
  }

  // ---- what the moves concern

  void gather(std::span<const Move> moves) {
    w_.begin_evaluation();
    moved_groups_.clear();
    moved_nodes_.clear();
    touched_.clear();
    concerns_.clear();
    num_moved_ops_ = 0;
    for (const Move& move : moves) {
      auto& target = target_[move.group];
      if (target.evaluation != w_.evaluation) moved_groups_.push_back({move.group, 0, 0});
      target = {w_.evaluation, move.device};
    }
    std::erase_if(moved_groups_, [this](MovedGroup& moved) {
      moved.from = placement_[problem_.group_ops(moved.group)[0]];
      moved.to = target_[moved.group].device;
      return moved.from == moved.to;
    });
    for (const MovedGroup& moved : moved_groups_) {
      for (const OpId op : problem_.group_ops(moved.group)) {
        const std::uint32_t node = p_.node_of_op[op];
        if (p_.op_of_node[node] == op) move_node(node, moved.to);
      }
    }
    for (const std::uint32_t tensor : touched_) add_concern(tensor);
    std::sort(concerns_.begin(), concerns_.end());
  }

  void move_node(std::uint32_t node, DeviceId to) {
    auto& state = w_.nodes[node];
    state.device = to;
    state.moved = true;
    moved_nodes_.push_back(node);
    for (auto input = t_.input_begin[node]; input < t_.input_begin[node + 1]; ++input)
      touch(t_.input_tensor[input]);
    for (auto tensor = p_.tensor_begin[node]; tensor < p_.tensor_begin[node + 1]; ++tensor)
      touch(tensor);
    if (p_.is_source[node] != 0) return;
    ++num_moved_ops_;
    concerns_.push_back(state.ready);
  }

  void touch(std::uint32_t tensor) {
    if (w_.touched_by_moves(tensor)) return;
    w_.tensors[tensor].evaluation = w_.evaluation;
    touched_.push_back(tensor);
  }

  // The moves change where the tensor is sent when its producer finishes. A source's that is sent
  // nowhere, before or after, as when a parameter moves with all its readers, concerns nobody.
  void add_concern(std::uint32_t tensor) {
    const std::uint32_t producer = t_.tensor_node[tensor];
    const auto& state = w_.nodes[producer];
    if (p_.is_source[producer] == 0) {
      if (!state.moved) concerns_.push_back(state.finish);
      return;
    }
    bool sent = w_.tensors[tensor].sent != MoveWorkspace::kNone;
    for (auto edge = t_.tensor_edges[tensor]; !sent && edge < t_.tensor_edges[tensor + 1]; ++edge) {
      const std::uint32_t consumer = p_.edge_target[edge] & ~SimProgram::kLastEdge;
      sent = w_.nodes[consumer].device != state.device;
    }
    if (sent) concerns_.push_back(1);
  }

  // ---- simulating what is concerned

  Evaluation evaluate_gathered(const Evaluation& limit) {
    w_.clear_peaks();
    if (!t_.memory_matters) return simulate(false, limit);
    if (limit.overflow == 0) {
      // Most candidates lose by their time alone.
      const Evaluation timed = simulate(false, limit);
      if (timed.step >= limit.step) return timed;
      w_.transfers.resize(w_.num_base_transfers);
      return simulate(true, kNoLimit);
    }
    return simulate(true, limit);
  }

  Evaluation simulate(bool with_memory, const Evaluation& limit) {
    return with_mode(with_memory, [&](auto fifo, auto memory) {
      return simulate_moves<MoveMode{fifo, memory, false}>(limit);
    });
  }

  template <MoveMode kMode>
  Evaluation simulate_moves(const Evaluation& limit) {
    MoveEngine<kMode> engine(p_, t_, w_, order_);
    if (limit != kNoLimit) engine.set_limit(limit, rest(), num_moved_ops_);
    if constexpr (kMode.memory) memory_.begin(moved_groups_, moved_nodes_, touched_, problem_);
    const auto last = static_cast<std::uint32_t>(w_.instants.size()) - 1;
    auto next = concerns_.begin();
    if (next == concerns_.end()) {
      // Only what is resident moves.
      if constexpr (kMode.memory) memory_.pass_over(0, last);
      return {base_.step, w_.overflow};
    }
    if (*next == 1 && w_.quiet_start) {
      if constexpr (kMode.memory) memory_.enter_after_sources();
      engine.begin_like_base(touched_, moved_nodes_);
    } else if (*next == 1) {
      if constexpr (kMode.memory) memory_.enter_step();
      engine.begin();
    } else {
      if constexpr (kMode.memory) memory_.enter(0, *next - 1);
      engine.begin_after(*next - 1, 0);
    }
    for (;;) {
      const SegmentEnd end = engine.run();
      if (end == SegmentEnd::kLost) return limit;
      if (end == SegmentEnd::kStepEnded) return {engine.step(), w_.overflow};
      const std::uint32_t matched = engine.matched();
      while (next != concerns_.end() && *next <= matched) ++next;
      if (next == concerns_.end()) {
        if constexpr (kMode.memory) {
          memory_.leave(matched);
          memory_.pass_over(matched, last);
        }
        return {base_.step + engine.shift(), w_.overflow};
      }
      if (*next - 1 == matched) continue;
      const Nanoseconds shift = engine.shift();
      if constexpr (kMode.memory) {
        memory_.leave(matched);
        memory_.enter(matched, *next - 1);
      }
      engine.begin_after(*next - 1, shift);
    }
  }

  // By node: the longest way on from its finish in the base placement, with transfers but without
  // waiting.
  const std::vector<Nanoseconds>& rest() {
    if (!rest_.empty()) return rest_;
    rest_.assign(p_.num_nodes(), 0);
    for (std::uint32_t node = p_.num_nodes(); node-- > 0;) {
      const DeviceId here = placement_[p_.op_of_node[node]];
      const auto follow = [&](std::uint32_t later, Nanoseconds transfer) {
        const DeviceId there = placement_[p_.op_of_node[later]];
        const Nanoseconds way = transfer + w_.devices[there].durations[later] + rest_[later];
        rest_[node] = std::max(rest_[node], way);
      };
      for (auto tensor = p_.tensor_begin[node]; tensor < p_.tensor_begin[node + 1]; ++tensor) {
        for (auto edge = t_.tensor_edges[tensor]; edge < t_.tensor_edges[tensor + 1]; ++edge) {
          const std::uint32_t later = p_.edge_target[edge] & ~SimProgram::kLastEdge;
          const DeviceId there = placement_[p_.op_of_node[later]];
          const auto& pair = p_.pairs[here * p_.num_devices + there];
          const auto row = static_cast<std::size_t>(pair.link_class) * p_.num_tensors();
          follow(later, here == there ? 0 : p_.transfer_durations[row + tensor]);
        }
      }
      if (p_.control.size() > 0) {
        for (const std::uint32_t later : p_.control[node]) follow(later, 0);
      }
    }
    return rest_;
  }

  struct Target {
    std::uint32_t evaluation;
    DeviceId device;
  };

  std::shared_ptr<const Simulator> simulator_;
  const Problem& problem_;
  const SimProgram& p_;
  MoveTables t_;
  MoveWorkspace w_;
  MoveMemory memory_;

  ReadyOrder order_;
  Placement placement_;
  Evaluation base_;
  bool has_base_ = false;
  std::vector<Nanoseconds> rest_;  // empty until asked for

  // Of the evaluation at hand.
  std::vector<Target> target_;  // by group
  std::vector<MovedGroup> moved_groups_;
  std::vector<std::uint32_t> moved_nodes_;
  std::vector<std::uint32_t> touched_;   // tensors that moved nodes make or read
  std::vector<std::uint32_t> concerns_;  // instants of the base run, ascending
  std::uint32_t num_moved_ops_ = 0;      // sources left out
};

IncrementalSimulator::IncrementalSimulator(std::shared_ptr<const Simulator> simulator)
    : run_(std::make_unique<Run>(std::move(simulator))) {}
IncrementalSimulator::~IncrementalSimulator() = default;
IncrementalSimulator::IncrementalSimulator(IncrementalSimulator&&) noexcept = default;
IncrementalSimulator& IncrementalSimulator::operator=(IncrementalSimulator&&) noexcept = default;

Evaluation IncrementalSimulator::set_base(const Placement& placement, const ReadyOrder& order) {
  return run_->set_base(placement, order);
}

const Placement& IncrementalSimulator::placement() const {
  return run_->placement();
}

const Evaluation& IncrementalSimulator::base() const {
  return run_->base();
}

OpSpan IncrementalSimulator::span(OpId op) const {
  return run_->span(op);
}

Nanoseconds IncrementalSimulator::ready_time(OpId op) const {
  return run_->ready_time(op);
}

std::int64_t IncrementalSimulator::simulated_ops() const {
  return run_->simulated_ops();
}

Evaluation IncrementalSimulator::evaluate(std::span<const Move> moves,
                                          const std::optional<Evaluation>& cutoff) {
  return run_->evaluate(moves, cutoff);
}

Evaluation IncrementalSimulator::accept(std::span<const Move> moves) {
  return run_->accept(moves);
}

}  // namespace emplace
