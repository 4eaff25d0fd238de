// The event loop of docs/simulator.md once more, able to begin at any instant of a recorded base
// run and to notice when it has fallen back into step with it (sim/incremental.h says what for).
// Recording is a mode of the same loop.
//
// How it is noticed, exactly and without comparing states: let k be the latest instant at which the
// base run finished any of the nodes that have finished here. These are all among those that the
// base had finished at the end of k, so if they are as many, they are the same. Then the states are
// equal if the same items run and wait (MoveQueues::same_as): missing inputs and memory follow. The
// moves themselves do not disturb this while no moved node, and no transfer of a tensor that a
// moved node makes or reads, is under way.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "sim/incremental_inputs.h"
#include "sim/incremental_queues.h"
#include "sim/incremental_tables.h"
#include "sim/incremental_transfers.h"
#include "sim/incremental_uses.h"
#include "sim/incremental_workspace.h"
#include "sim/program.h"

namespace emplace {

struct MoveMode {
  bool fifo;    // else by rank
  bool memory;  // follow the use of memory
  bool record;  // make this the base run
};

enum class SegmentEnd {
  kStepEnded,
  kInStep,  // the state is that of the base at `matched()`, `shift()` later
  kLost,    // cannot be better than the limit
};

template <MoveMode kMode>
class MoveEngine {
 public:
  using Workspace = MoveWorkspace;

  MoveEngine(const SimProgram& program, const MoveTables& tables, Workspace& workspace,
             const ReadyOrder& order)
      : p_(program),
        t_(tables),
        w_(workspace),
        queues_(program, workspace, order),
        inputs_(program, tables, workspace),
        maker_(program, tables, workspace),
        memory_(program, tables, workspace) {}

  // Gives up once the result cannot be less than `limit`. `rest`: by node, at least how long the
  // step of the base placement still lasts when the node has finished.
  void set_limit(const Evaluation& limit, const std::vector<Nanoseconds>& rest,
                 std::uint32_t num_moved) {
    limit_ = limit;
    rest_ = rest.data();
    unstarted_moved_ = num_moved;
  }

  // From the beginning of the step. With memory, w.used holds what is resident.
  void begin() {
    begin_segment(0, 0);
    instant_ = 1;
    ++w_.tick;
    if constexpr (kMode.record) inputs_.count_all();
    if constexpr (kMode.memory) {
      for (const std::uint32_t node : p_.sources) {
        const auto& memory = p_.memory[node];
        memory_.change(nodes_[node].device, memory.alloc_at_start - memory.free_at_finish);
      }
    }
    for (const auto& source : p_.source_tensors)
      hand_over<false>(source.tensor, nodes_[source.node].device);
    for (const std::uint32_t node : p_.ready_at_start) {
      if (kMode.record ? nodes_[node].missing == 0 : inputs_.count_at_start(node) == 0)
        make_ready(node);
    }
    if constexpr (kMode.record) {
      for (const std::uint32_t node : p_.sources)
        nodes_[node].ready = nodes_[node].start = nodes_[node].finish = instant_;
      w_.quiet_start = w_.instantly.empty();
    }
    settle();
  }

  // The same where w.quiet_start allows it: only what the moves touch, `tensors` and `nodes`, is
  // worked out anew. With memory, w.used holds what is resident and what sources put there.
  void begin_like_base(std::span<const std::uint32_t> tensors,
                       std::span<const std::uint32_t> nodes) {
    begin_segment(1, 0);
    ++w_.tick;
    if constexpr (kMode.memory) {
      for (std::uint32_t device = 0; device < num_devices_; ++device) memory_.change(device, 0);
    }
    for (const std::uint32_t node : nodes) {
      if (p_.is_source[node] == 0 && inputs_.recount(node)) make_ready(node);
    }
    for (const std::uint32_t tensor : tensors) {
      if (p_.is_source[t_.tensor_node[tensor]] != 0) send_anew(tensor);
    }
    for (std::uint32_t i = 0; i < w_.instants[1].log_end; ++i) {
      const std::uint32_t item = w_.log[i];
      if ((item & kTransfer) == 0) {
        if (nodes_[item].segment != w_.segment) arrivals_[num_arrivals_++] = item;
      } else if (!w_.touched_by_moves(w_.transfers[item & ~kTransfer].tensor)) {
        w_.sent.push_back(item & ~kTransfer);
      }
    }
    settle();
  }

  // From the end of an instant of the base run. With memory, w.used holds what is used then.
  void begin_after(std::uint32_t instant, Nanoseconds shift) {
    begin_segment(instant, w_.instants[instant].time + shift);
    finished_ = w_.instants[instant].finished;
    queues_.restore(instant, shift);
  }

  SegmentEnd run() {
    while (queues_.num_busy() > 0) {
      now_ = queues_.next_end();
      ++w_.tick;
      if constexpr (kMode.record) ++instant_;
      may_match_ = false;
      do {
        const std::uint32_t slot = queues_.pop_running();
        if (slot < num_devices_) {
          end_device(slot);
        } else {
          end_channel(slot - num_devices_);
        }
      } while (queues_.ends_by(now_));
      settle();
      if constexpr (!kMode.record) {
        if (bound_ >= limit_.step && w_.overflow >= limit_.overflow) return SegmentEnd::kLost;
        if (may_match_ && finished_ == w_.instants[latest_].finished && active_moves_ == 0 &&
            queues_.same_as(latest_, now_)) {
          return SegmentEnd::kInStep;
        }
      }
    }
    return SegmentEnd::kStepEnded;
  }

  Nanoseconds step() const { return step_; }
  std::uint32_t matched() const { return latest_; }
  Nanoseconds shift() const { return now_ - w_.instants[latest_].time; }

 private:
  static constexpr std::uint32_t kNone = Workspace::kNone;
  static constexpr std::uint32_t kMore = Workspace::kMore;
  static constexpr std::uint32_t kTransfer = Workspace::kTransfer;
  static constexpr std::uint32_t kLastEdge = SimProgram::kLastEdge;

  void begin_segment(std::uint32_t after, Nanoseconds now) {
    queues_.clear();
    w_.begin_segment(after);
    latest_ = after;
    now_ = now;
    finished_ = 0;
    active_moves_ = 0;
  }

  // ---- instants

  // Follows up what has finished, then starts what can start.
  [[gnu::always_inline]] void settle() {
    while (!w_.instantly.empty()) {
      const std::uint32_t item = w_.instantly.back();
      w_.instantly.pop_back();
      if ((item & kTransfer) != 0) {
        pass_instantly(item & ~kTransfer);
      } else {
        run_instantly(item);
      }
    }
    if (num_arrivals_ > 0) join_devices();
    if (!w_.sent.empty()) join_channels();
    for (std::uint32_t i = 0; i < num_startable_; ++i) {
      const std::uint32_t slot = startable_[i];
      if (slot < num_devices_) {
        start_device(slot);
      } else {
        start_channel(slot - num_devices_);
      }
    }
    num_startable_ = 0;
    if constexpr (kMode.memory) note_peaks();
    if constexpr (kMode.record) record_instant();
  }

  // Nodes that become ready at one instant queue by index, whatever made them ready first.
  void join_devices() {
    if (num_arrivals_ > 1) std::sort(arrivals_, arrivals_ + num_arrivals_);
    for (std::uint32_t i = 0; i < num_arrivals_; ++i) {
      const std::uint32_t node = arrivals_[i];
      const std::uint32_t device = nodes_[node].device;
      auto& state = devices_[device];
      if (state.idle && state.empty()) startable_[num_startable_++] = device;
      queues_.join(state, node);
      if constexpr (kMode.record) {
        nodes_[node].ready = instant_;
        w_.log.push_back(node);
      }
    }
    num_arrivals_ = 0;
  }

  void join_channels() {
    if (w_.sent.size() > 1) {
      std::sort(w_.sent.begin(), w_.sent.end(),
                [this](std::uint32_t a, std::uint32_t b) { return queues_.comes_before(a, b); });
    }
    for (const std::uint32_t made : w_.sent) {
      const ChannelId channel = w_.transfers[made].channel;
      if (queues_.unlimited(channel)) {
        begin_transfer(made);
        queues_.pass(channel, made, now_ + w_.transfers[made].length);
      } else {
        auto& state = w_.channels[channel];
        if (state.idle && state.empty()) startable_[num_startable_++] = num_devices_ + channel;
        queues_.join(state, made);
      }
      if constexpr (kMode.record) {
        w_.transfers[made].queued = instant_;
        w_.log.push_back(made | kTransfer);
      }
    }
    w_.sent.clear();
  }

  void record_instant() {
    const std::uint32_t busy = queues_.num_busy();
    const std::uint32_t waiting = queues_.num_waiting();
    const auto log_end = static_cast<std::uint32_t>(w_.log.size());
    w_.instants.push_back({now_, finished_, busy, waiting, log_end});
    // So rare that all snapshots together are no longer than the log.
    constexpr std::uint32_t kSpacing = 32;
    if (log_end - w_.snapshots.back().log_end >= kSpacing + busy + waiting)
      queues_.take_snapshot(instant_);
  }

  // What a device uses counts at the end of each instant: releases come before allocations.
  void note_peaks() {
    for (const std::uint32_t device : w_.touched) {
      if (w_.used[device] > w_.peaks[device]) w_.raise_peak(p_, device, w_.used[device]);
      if constexpr (kMode.record) w_.profile.add(device, instant_, w_.used[device]);
    }
    w_.touched.clear();
    if (w_.overflow > limit_.overflow) bound_ = limit_.step;
  }

  // ---- devices

  [[gnu::always_inline]] void make_ready(std::uint32_t node) {
    const auto& state = nodes_[node];
    if (state.moved) ++active_moves_;
    if (devices_[state.device].durations[node] == 0) {
      w_.instantly.push_back(node);
    } else {
      arrivals_[num_arrivals_++] = node;
    }
  }

  void run_instantly(std::uint32_t node) {
    auto& state = nodes_[node];
    if constexpr (kMode.record) state.ready = state.start = instant_;
    note_start(node, now_);
    if constexpr (kMode.memory) memory_.change(state.device, p_.memory[node].alloc_at_start);
    finish(node, state.device);
    if (state.moved) --active_moves_;
  }

  [[gnu::always_inline]] void start_device(std::uint32_t device) {
    auto& state = devices_[device];
    const std::uint32_t node = queues_.leave(state);
    state.node = node;
    state.idle = false;
    const Nanoseconds end = now_ + state.durations[node];
    if constexpr (kMode.record) nodes_[node].start = instant_;
    note_start(node, end);
    if constexpr (kMode.memory) memory_.change(device, p_.memory[node].alloc_at_start);
    queues_.push_running(end, device);
  }

  // The step lasts at least until the node's end and the longest way on from there. Once all moved
  // nodes have started, none of them lies on that way, and the base placement's is right.
  [[gnu::always_inline]] void note_start(std::uint32_t node, Nanoseconds end) {
    if constexpr (!kMode.record) {
      if (rest_ == nullptr) return;
      const bool moved = nodes_[node].moved;
      if (moved) --unstarted_moved_;
      const bool as_in_base = unstarted_moved_ == 0 && !moved;
      bound_ = std::max(bound_, end + (as_in_base ? rest_[node] : p_.least_rest[node]));
    }
  }

  [[gnu::always_inline]] void end_device(std::uint32_t device) {
    auto& state = devices_[device];
    if (state.finished) {
      state.finished = false;
      become_idle(device);
      return;
    }
    if (p_.gaps[device] > 0) {
      state.finished = true;
      queues_.push_running(now_ + p_.gaps[device], device);
    } else {
      become_idle(device);
    }
    finish(state.node, device);
  }

  void become_idle(std::uint32_t device) {
    auto& state = devices_[device];
    if (nodes_[state.node].moved) --active_moves_;
    state.idle = true;
    if (!state.empty()) startable_[num_startable_++] = device;
  }

  void finish(std::uint32_t node, std::uint32_t device) {
    step_ = now_;
    ++finished_;
    if constexpr (kMode.record) {
      nodes_[node].finish = instant_;
    } else {
      ++w_.simulated;
      if (nodes_[node].finish >= latest_) {
        latest_ = nodes_[node].finish;
        may_match_ = true;
      }
    }
    const std::uint32_t end = p_.tensor_begin[node + 1];
    for (auto tensor = p_.tensor_begin[node]; tensor < end; ++tensor)
      hand_over<true>(tensor, device);
    if (p_.control.size() > 0) {
      for (const std::uint32_t later : p_.control[node]) satisfy(later);
    }
    if constexpr (kMode.memory) {
      memory_.change(device, -p_.memory[node].free_at_finish);
      memory_.release_inputs(node, device);
    }
  }

  // A tensor is there. Consumers do not count sources on their own device among what they wait for
  // (kSatisfy is false then).
  template <bool kSatisfy>
  void hand_over(std::uint32_t tensor, std::uint32_t device) {
    const auto& state = w_.tensors[tensor];
    const bool make = kMode.record || state.evaluation == w_.evaluation;
    const std::uint32_t end = tensor_edges_[tensor + 1];
    std::uint32_t uses = 0;
    if (!make && state.sent == kNone) {
      uses = end - tensor_edges_[tensor];
      if constexpr (kSatisfy) {
        for (auto edge = tensor_edges_[tensor]; edge < end; ++edge)
          satisfy(edge_target_[edge] & ~kLastEdge);
      }
    } else {
      if (make) maker_.begin();
      for (auto edge = tensor_edges_[tensor]; edge < end; ++edge) {
        const std::uint32_t consumer = edge_target_[edge] & ~kLastEdge;
        const std::uint32_t there = nodes_[consumer].device;
        if (there == device) {
          ++uses;
          if constexpr (kMode.record) w_.arrival[t_.input_of_edge[edge]] = instant_;
          if constexpr (kSatisfy) satisfy(consumer);
        } else if (make) {
          if constexpr (kMode.record && !kSatisfy) inputs_.add(consumer);
          maker_.add(tensor, edge, device, there);
        }
      }
      uses += submit(tensor, make ? maker_.end(tensor) : state.sent);
    }
    if constexpr (kMode.memory) memory_.add_uses(tensor, uses);
  }

  // A source's tensor that the moves touch, when its consumers on the same device are known to have
  // it (begin_like_base).
  void send_anew(std::uint32_t tensor) {
    const std::uint32_t device = nodes_[t_.tensor_node[tensor]].device;
    maker_.begin();
    for (auto edge = tensor_edges_[tensor]; edge < tensor_edges_[tensor + 1]; ++edge) {
      const std::uint32_t consumer = edge_target_[edge] & ~kLastEdge;
      const std::uint32_t there = nodes_[consumer].device;
      if (inputs_.recount(consumer)) make_ready(consumer);
      if (there != device) maker_.add(tensor, edge, device, there);
    }
    const std::uint32_t uses = submit(tensor, maker_.end(tensor));
    if constexpr (kMode.memory) memory_.add_uses(tensor, uses);
  }

  [[gnu::always_inline]] void satisfy(std::uint32_t node) {
    if (inputs_.arrive(node)) make_ready(node);
  }

  // ---- channels

  // Sends the tensor's transfers, and says how many there are.
  std::uint32_t submit(std::uint32_t tensor, std::uint32_t first) {
    if (first == kNone) return 0;
    const auto end = static_cast<std::uint32_t>(w_.transfers.size());
    std::uint32_t count = 0;
    for (std::uint32_t made = first; made < end && w_.transfers[made].tensor == tensor; ++made) {
      if (w_.transfers[made].carried) continue;
      ++count;
      if (w_.transfers[made].length == 0) {
        w_.instantly.push_back(made | kTransfer);
      } else {
        w_.sent.push_back(made);
      }
    }
    if (w_.made_by_moves(first)) active_moves_ += count;
    return count;
  }

  void pass_instantly(std::uint32_t made) {
    begin_transfer(made);
    end_transfer(made);
    if (w_.made_by_moves(made)) --active_moves_;
  }

  void start_channel(ChannelId channel) {
    auto& state = w_.channels[channel];
    const std::uint32_t made = queues_.leave(state);
    state.running = made;
    state.idle = false;
    begin_transfer(made);
    queues_.push_running(now_ + w_.transfers[made].length, num_devices_ + channel);
  }

  void end_channel(ChannelId channel) {
    if (queues_.unlimited(channel)) return end_passing(channel);
    auto& state = w_.channels[channel];
    const std::uint32_t made = state.running;
    if (state.finished) {
      state.finished = false;
      become_idle(state, channel);
      return;
    }
    if (w_.transfers[made].hold > 0) {
      state.finished = true;
      queues_.push_running(now_ + w_.transfers[made].hold, num_devices_ + channel);
    } else {
      become_idle(state, channel);
    }
    end_transfer(made);
  }

  void end_passing(ChannelId channel) {
    for (;;) {
      const std::uint32_t made = queues_.take_passed(channel, now_);
      if (made == kNone) return;
      if (w_.made_by_moves(made)) --active_moves_;
      end_transfer(made);
    }
  }

  void become_idle(Workspace::ChannelState& state, ChannelId channel) {
    if (w_.made_by_moves(state.running)) --active_moves_;
    state.idle = true;
    if (!state.empty()) startable_[num_startable_++] = num_devices_ + channel;
  }

  void begin_transfer(std::uint32_t made) {
    if constexpr (kMode.memory || kMode.record) {
      for (; made != kNone; made = w_.transfers[made].also) {
        auto& transfer = w_.transfers[made];
        if constexpr (kMode.memory) memory_.change(transfer.to, p_.copy_bytes[transfer.tensor]);
        if constexpr (kMode.record) transfer.start = instant_;
      }
    }
  }

  void end_transfer(std::uint32_t made) {
    if constexpr (kMode.memory) {
      const auto& transfer = w_.transfers[made];
      memory_.end_use(transfer.tensor, transfer.from);
    }
    const std::uint32_t* next_edge = w_.next_edge_of(made);
    for (; made != kNone; made = w_.transfers[made].also) {
      if constexpr (kMode.record) w_.transfers[made].end = instant_;
      for (std::uint32_t edges = w_.transfers[made].edges;; edges = next_edge[edges & ~kMore]) {
        const std::uint32_t edge = edges & ~kMore;
        if constexpr (kMode.record) w_.arrival[t_.input_of_edge[edge]] = instant_;
        satisfy(edge_target_[edge] & ~kLastEdge);
        if ((edges & kMore) == 0) break;
      }
    }
  }

  const SimProgram& p_;
  const MoveTables& t_;
  Workspace& w_;
  MoveQueues<kMode.fifo> queues_;
  MissingInputs inputs_;
  TransferMaker<kMode.record> maker_;
  MemoryUses memory_;

  // The arrays of the inner loops, one step away instead of three.
  const std::uint32_t num_devices_ = p_.num_devices;
  const std::uint32_t* const edge_target_ = p_.edge_target.data();
  const std::uint32_t* const tensor_edges_ = t_.tensor_edges.data();
  Workspace::Node* const nodes_ = w_.nodes.data();
  Workspace::DeviceState* const devices_ = w_.devices.data();
  std::uint32_t* const arrivals_ = w_.arrivals.data();
  std::uint32_t* const startable_ = w_.startable.data();
  std::uint32_t num_arrivals_ = 0;
  std::uint32_t num_startable_ = 0;

  Evaluation limit_{std::numeric_limits<Nanoseconds>::max(), std::numeric_limits<Bytes>::max()};
  const Nanoseconds* rest_ = nullptr;
  std::uint32_t unstarted_moved_ = 0;
  Nanoseconds bound_ = 0;  // the step lasts at least as long

  Nanoseconds now_ = 0;
  Nanoseconds step_ = 0;
  std::uint32_t instant_ = 0;  // of the base run, while it is recorded
  std::uint32_t latest_ = 0;   // of the base run's finishes of what has finished here
  bool may_match_ = false;     // something has finished at this instant that finished at `latest_`
  std::uint32_t finished_ = 0;
  std::uint32_t active_moves_ = 0;  // moved nodes and their transfers that wait or run
};

}  // namespace emplace
