// The event loop of docs/simulator.md, and the sweep that finds the peaks of memory.
//
// How it is fast:
// - The running items, one per busy device or channel, are a small sorted array of keys.
// - FIFO queues are logs: ready times never decrease, so only ops that become ready at the same
//   instant need sorting by index. By rank, queues are bits (rank_sets.h); with heaps, a step of
//   contiguous blocks took 1.4 to 1.9 times as long.
// - The loop notes the order of memory events but looks up no last uses; a linear pass afterwards
//   does, over arrays in the order of the graph.
#pragma once

#include <algorithm>
#include <numeric>

#include "sim/program.h"
#include "sim/workspace.h"

namespace emplace {

struct EngineMode {
  bool special;   // gaps, holds, multicast, unlimited channels, transfers of no length
  bool instants;  // ops of no length; always with `special`
  bool fifo;      // else by rank
  bool memory;    // note memory events
  bool timeline;  // note the time of every memory event
  bool limited;   // end once the step cannot be below a limit
};

template <EngineMode kMode>
class Engine {
 public:
  using Workspace = Simulator::Workspace;

  Engine(const SimProgram& program, Workspace& workspace, const ReadyOrder& order)
      : p_(program), w_(workspace), order_(order) {}

  // The step time; where there is a limit, that of a step below it, or the limit.
  Nanoseconds run(const Placement& placement, Nanoseconds limit = 0) {
    limit_ = limit;
    reset(placement);
    if constexpr (kMode.limited) {
      if (lost_) return limit;  // nothing waits yet
    }
    start_sources();
    follow_up();
    start_items();
    while (running_head_ < running_tail_) {
      now_ = static_cast<Nanoseconds>(running_[running_head_] >> slot_bits_);
      ++instant_;
      const std::uint64_t next_instant = static_cast<std::uint64_t>(now_ + 1) << slot_bits_;
      do {
        const auto slot = static_cast<std::uint32_t>(running_[running_head_++] & slot_mask_);
        if (slot < num_devices_) {
          end_device(slot);
        } else {
          end_channel(slot - num_devices_);
        }
      } while (running_head_ < running_tail_ && running_[running_head_] < next_instant);
      follow_up();
      start_items();
      if constexpr (kMode.limited) {
        if (lost_) {
          empty_queues();
          return limit;
        }
      }
    }
    w_.num_transfers = num_transfers_;
    w_.num_events = num_events_;
    return step_;
  }

 private:
  static constexpr std::uint32_t kNone = SimProgram::kNone;
  static constexpr std::uint32_t kLastEdge = SimProgram::kLastEdge;
  static constexpr std::uint32_t kDeviceBits = Workspace::kDeviceBits;
  static constexpr std::uint32_t kDeviceMask = Workspace::kDeviceMask;
  static constexpr std::uint32_t kOneInput = Workspace::kOneInput;

  void reset(const Placement& placement) {
    for (std::uint32_t d = 0; d < num_devices_; ++d) devices_[d].tail = 0;
    for (std::uint32_t node = 0; node < p_.num_nodes(); ++node) {
      const DeviceId device = placement[p_.op_of_node[node]];
      words_[node] = (p_.in_degree[node] << kDeviceBits) | device;
      if constexpr (kMode.memory) memory_[node].release = 0;
      if constexpr (kMode.fifo) ++devices_[device].tail;
    }
    std::uint32_t* queue = w_.queue.data();
    for (std::uint32_t d = 0; d < num_devices_; ++d) {
      const std::uint32_t size = devices_[d].tail;
      const Nanoseconds* durations =
          p_.durations.data() + static_cast<std::size_t>(p_.column_of_device[d]) * p_.num_nodes();
      devices_[d] = {queue, durations, -1, 0, 0, 0, kNone, true, false, false};
      queue += size;
    }
    if constexpr (!kMode.fifo) w_.waiting.make_room();
    if constexpr (kMode.limited) add_up_work();
    for (auto& channel : w_.channels)
      channel = {-1, kNone, kNone, kNone, kNone, kNone, true, false};
    for (auto& latest : w_.transfer_to) latest = {kNone, kNone};
    if constexpr (kMode.special) {
      for (auto& passing : w_.passing) passing.clear();
      std::fill(w_.multicast_on.begin(), w_.multicast_on.end(), kNone);
    }
    if constexpr (kMode.memory) {
      if constexpr (kMode.instants) {
        std::fill(w_.event_instant_of_device.begin(), w_.event_instant_of_device.end(), kNone);
      }
      // Event d is what the sources put on device d at time 0.
      for (std::uint32_t d = 0; d < num_devices_; ++d) add_event(d, 0);
    }
  }

  // A device ends no sooner than all its work and the time that it has already been idle.
  void add_up_work() {
    constexpr std::uint32_t kSums = Workspace::kWorkSums;
    auto& sums = w_.work;
    std::fill(sums.begin(), sums.end(), 0);
    for (std::uint32_t node = 0; node < p_.num_nodes(); ++node) {
      const std::uint32_t device = words_[node] & kDeviceMask;
      sums[device * kSums + node % kSums] += devices_[device].durations[node];
    }
    for (std::uint32_t d = 0; d < num_devices_; ++d) {
      const auto first = sums.begin() + d * kSums;
      w_.earliest_end[d] = std::accumulate(first, first + kSums, Nanoseconds{0});
      lost_ = lost_ || w_.earliest_end[d] >= limit_;
      w_.idle_since[d] = 0;
    }
  }

  void start_sources() {
    for (const std::uint32_t node : p_.sources) {
      const std::uint32_t device = words_[node] & kDeviceMask;
      if constexpr (kMode.memory) {
        events_[device] +=
            Workspace::event(p_.memory[node].alloc_at_start - p_.memory[node].free_at_finish, 0);
        if constexpr (kMode.timeline) w_.start_event[node] = device;
        memory_[node].finish_event = device;
      }
    }
    for (const auto& source : p_.source_tensors) send_source(source);
    starting_ = false;
    for (const std::uint32_t node : p_.ready_at_start) {
      if (words_[node] < kOneInput) make_ready(node, words_[node]);
    }
  }

  // A run that reaches its end leaves nothing that waits.
  void empty_queues() {
    if constexpr (!kMode.fifo) {
      for (std::uint32_t d = 0; d < num_devices_; ++d) {
        for (; devices_[d].head != devices_[d].tail; --devices_[d].tail) w_.waiting.take_lowest(d);
      }
    }
  }

  // Ops of no length finish the moment they are ready, and make others ready in turn.
  void follow_up() {
    if constexpr (kMode.instants) {
      while (num_instant_ > 0) {
        const std::uint32_t node = w_.instant[--num_instant_];
        const std::uint32_t device = words_[node] & kDeviceMask;
        if constexpr (kMode.memory) note_start(node, device);
        finish(node, device);
      }
    }
  }

  [[gnu::always_inline]] void start_items() {
    for (std::uint32_t i = 0; i < num_startable_; ++i) {
      const std::uint32_t slot = startable_[i];
      if (slot < num_devices_) {
        start_device(slot);
      } else {
        start_channel(slot - num_devices_);
      }
    }
    num_startable_ = 0;
  }

  // ---- devices

  [[gnu::always_inline]] void make_ready(std::uint32_t node, std::uint32_t device) {
    auto& state = devices_[device];
    if constexpr (kMode.instants) {
      if (state.durations[node] == 0) {
        w_.instant[num_instant_++] = node;
        return;
      }
    }
    if (state.idle && state.head == state.tail) startable_[num_startable_++] = device;
    if constexpr (kMode.fifo) {
      if (state.stamp != now_) {
        state.sort_arrivals();
        state.stamp = now_;
        state.mark = state.tail;
      }
      state.add_arrival(node);
    } else {
      ++state.tail;
      w_.waiting.add(device, order_.rank_of_node()[node]);
    }
  }

  [[gnu::always_inline]] std::uint32_t pop_ready(Workspace::DeviceState& state,
                                                 [[maybe_unused]] std::uint32_t device) {
    if constexpr (kMode.fifo) {
      state.sort_arrivals();
      return state.queue[state.head++];
    } else {
      --state.tail;
      return order_.node_of_rank()[w_.waiting.take_lowest(device)];
    }
  }

  [[gnu::always_inline]] void start_device(std::uint32_t device) {
    auto& state = devices_[device];
    const std::uint32_t node = pop_ready(state, device);
    if constexpr (kMode.timeline) w_.ran_before[node] = state.node;
    state.node = node;
    state.idle = false;
    if constexpr (kMode.limited) {
      w_.earliest_end[device] += now_ - w_.idle_since[device];
      lost_ = lost_ || w_.earliest_end[device] >= limit_;
    }
    if constexpr (kMode.memory) note_start(node, device);
    push_running(now_ + state.durations[node], device);
  }

  [[gnu::always_inline]] void end_device(std::uint32_t device) {
    auto& state = devices_[device];
    if constexpr (kMode.special) {
      if (state.finished) {
        state.finished = false;
        become_idle(state, device);
        return;
      }
      if (p_.gaps[device] > 0) {
        state.finished = true;
        push_running(now_ + p_.gaps[device], device);
      } else {
        become_idle(state, device);
      }
    } else {
      become_idle(state, device);
    }
    finish(state.node, device);
  }

  void become_idle(Workspace::DeviceState& state, std::uint32_t device) {
    state.idle = true;
    if constexpr (kMode.limited) w_.idle_since[device] = now_;
    if (state.head != state.tail) startable_[num_startable_++] = device;
  }

  [[gnu::always_inline]] void finish(std::uint32_t node, std::uint32_t device) {
    step_ = now_;
    if constexpr (kMode.limited) lost_ = lost_ || now_ + p_.least_rest[node] >= limit_;
    if constexpr (kMode.memory) {
      memory_[node].finish_event =
          add_event(device, -p_.memory[node].free_at_finish - memory_[node].release);
    }
    release_consumers(node, device);
  }

  // A source's consumers do not count it among the inputs that they wait for: it is there at once.
  // Those on other devices wait for its transfer instead.
  void send_source(const SimProgram::SourceTensor& source) {
    const std::uint32_t device = words_[source.node] & kDeviceMask;
    [[maybe_unused]] const std::uint32_t first_transfer = num_transfers_;
    for (std::uint32_t edge = source.first_edge;; ++edge) {
      const std::uint32_t target = edge_target_[edge];
      const std::uint32_t consumer = target & ~kLastEdge;
      const std::uint32_t there = words_[consumer] & kDeviceMask;
      if (there != device) {
        words_[consumer] += kOneInput;
        send(source.tensor, edge, device, there);
      } else if constexpr (kMode.memory) {
        memory_[consumer].release += p_.sole_bytes[source.tensor];
      }
      if ((target & kLastEdge) != 0) break;
    }
    if constexpr (kMode.special) queue_transfers(first_transfer);
  }

  void release_consumers(std::uint32_t node, std::uint32_t device) {
    std::uint32_t edge = p_.edge_begin[node];
    const std::uint32_t end = p_.edge_begin[node + 1];
    std::uint32_t tensor = p_.tensor_begin[node];
    [[maybe_unused]] std::uint32_t first_transfer = num_transfers_;
    for (; edge != end; ++edge) {
      const std::uint32_t target = edge_target_[edge];
      const std::uint32_t consumer = target & ~kLastEdge;
      const std::uint32_t there = words_[consumer] & kDeviceMask;
      if (there == device) {
        if constexpr (kMode.memory) memory_[consumer].release += p_.sole_bytes[tensor];
        satisfy(consumer);
      } else {
        send(tensor, edge, device, there);
      }
      if ((target & kLastEdge) != 0) {
        if constexpr (kMode.special) {
          queue_transfers(first_transfer);
          first_transfer = num_transfers_;
        }
        ++tensor;
      }
    }
    if (p_.control.size() > 0) {
      for (const std::uint32_t later : p_.control[node]) satisfy(later);
    }
  }

  [[gnu::always_inline]] void satisfy(std::uint32_t node) {
    const std::uint32_t word = words_[node] -= kOneInput;
    if constexpr (kMode.special) {
      if (starting_) return;  // start_sources looks at all that may be ready then
    }
    if (word < kOneInput) make_ready(node, word);
  }

  // ---- channels

  // A consumer of the tensor is on another device: it joins the transfer there, or makes one.
  [[gnu::always_inline]] void send(std::uint32_t tensor, std::uint32_t edge, std::uint32_t from,
                                   std::uint32_t to) {
    auto& latest = transfer_to_[to];
    if (latest.tensor == tensor) {
      next_edge_[edge] = transfers_[latest.transfer].edges;
      transfers_[latest.transfer].edges = edge | Workspace::kMore;
      return;
    }
    const std::uint32_t made = num_transfers_++;
    latest = {tensor, made};
    const auto& pair = p_.pairs[from * num_devices_ + to];
    auto& transfer = transfers_[made];
    transfer.length =
        p_.transfer_durations[static_cast<std::size_t>(pair.link_class) * p_.num_tensors() +
                              tensor];
    transfer.tensor = tensor;
    transfer.edges = edge;
    transfer.from = static_cast<DeviceId>(from);
    transfer.to = static_cast<DeviceId>(to);
    if constexpr (kMode.special) {
      w_.multicasts[made] = {pair.hold, kNone, transfer.to, false};
    } else {
      queue_transfer(made, pair.channel);
    }
  }

  // All destinations of one tensor are known: those that share a multicast channel become one.
  void queue_transfers(std::uint32_t first) {
    for (std::uint32_t made = first; made < num_transfers_; ++made) {
      const auto& pair = p_.pairs[transfers_[made].from * num_devices_ + transfers_[made].to];
      if (!pair.multicast) continue;
      const std::uint32_t leader = w_.multicast_on[pair.channel];
      if (leader == kNone || leader < first) {
        w_.multicast_on[pair.channel] = made;
        continue;
      }
      auto& carrier = w_.multicasts[leader];
      auto& carried = w_.multicasts[made];
      transfers_[leader].length = std::max(transfers_[leader].length, transfers_[made].length);
      carrier.hold = std::max(carrier.hold, carried.hold);
      carrier.lowest_to = std::min(carrier.lowest_to, carried.lowest_to);
      carried.carried = true;
      carried.also = carrier.also;
      carrier.also = made;
    }
    for (std::uint32_t made = first; made < num_transfers_; ++made) {
      if (w_.multicasts[made].carried) continue;
      const auto& transfer = transfers_[made];
      if (transfer.length == 0) {
        begin_transfer(made);
        end_transfer(made);
      } else {
        queue_transfer(made, p_.pairs[transfer.from * num_devices_ + transfer.to].channel);
      }
    }
  }

  // The order of transfers that are queued at one instant: by tensor, then lowest destination.
  bool comes_before(std::uint32_t a, std::uint32_t b) const {
    const TensorId tensor_a = p_.tensor_id[transfers_[a].tensor];
    const TensorId tensor_b = p_.tensor_id[transfers_[b].tensor];
    if (tensor_a != tensor_b) return tensor_a < tensor_b;
    if constexpr (kMode.special) return w_.multicasts[a].lowest_to < w_.multicasts[b].lowest_to;
    return transfers_[a].to < transfers_[b].to;
  }

  // Where a channel carries any number, a transfer begins when it would be queued. The channel is
  // one running item, which ends when the first of its transfers does.
  void pass(std::uint32_t made, ChannelId channel) {
    auto& passing = w_.passing[channel];
    const std::uint32_t slot = num_devices_ + channel;
    const Nanoseconds end = now_ + transfers_[made].length;
    const bool first = passing.empty() || end < passing.next_end();
    if (first && !passing.empty()) remove_running(passing.next_end(), slot);
    if (first) push_running(end, slot);
    passing.add(end, made);
    begin_transfer(made);
  }

  void end_passing(std::uint32_t channel) {
    auto& passing = w_.passing[channel];
    while (!passing.empty() && passing.next_end() == now_) end_transfer(passing.take());
    if (!passing.empty()) push_running(passing.next_end(), num_devices_ + channel);
  }

  [[gnu::always_inline]] void queue_transfer(std::uint32_t made, ChannelId channel) {
    if constexpr (kMode.special) {
      if (p_.unlimited[channel] != 0) return pass(made, channel);
    }
    auto& state = channels_[channel];
    transfers_[made].next = kNone;
    if (state.stamp != now_) {
      state.stamp = now_;
      state.mark = state.near = state.last;
    }
    if (state.first == kNone) {
      if (state.idle) startable_[num_startable_++] = num_devices_ + channel;
      state.first = state.last = made;
    } else if (state.last == state.mark || comes_before(state.last, made)) {
      if (transfers_[state.last].tensor != transfers_[made].tensor) state.near = state.last;
      transfers_[state.last].next = made;
      state.last = made;
    } else {
      // The last one comes later in the order, so the place is before it; mostly it is among the
      // destinations of the last tensor.
      const bool near = state.near != state.mark && comes_before(state.near, made);
      const std::uint32_t from = near ? state.near : state.mark;
      std::uint32_t* link = from == kNone ? &state.first : &transfers_[from].next;
      while (comes_before(*link, made)) link = &transfers_[*link].next;
      transfers_[made].next = *link;
      *link = made;
    }
  }

  [[gnu::always_inline]] void start_channel(std::uint32_t channel) {
    auto& state = channels_[channel];
    const std::uint32_t made = state.first;
    state.first = transfers_[made].next;
    if (state.first == kNone) state.last = kNone;
    state.running = made;
    state.idle = false;
    begin_transfer(made);
    push_running(now_ + transfers_[made].length, num_devices_ + channel);
  }

  [[gnu::always_inline]] void end_channel(std::uint32_t channel) {
    if constexpr (kMode.special) {
      if (p_.unlimited[channel] != 0) return end_passing(channel);
    }
    auto& state = channels_[channel];
    const std::uint32_t made = state.running;
    if constexpr (kMode.special) {
      if (state.finished) {
        state.finished = false;
        become_idle(state, channel);
        return;
      }
      if (w_.multicasts[made].hold > 0) {
        state.finished = true;
        push_running(now_ + w_.multicasts[made].hold, num_devices_ + channel);
      } else {
        become_idle(state, channel);
      }
    } else {
      become_idle(state, channel);
    }
    end_transfer(made);
  }

  void become_idle(Workspace::ChannelState& state, std::uint32_t channel) {
    state.idle = true;
    if (state.first != kNone) startable_[num_startable_++] = num_devices_ + channel;
  }

  [[gnu::always_inline]] void begin_transfer(std::uint32_t made) {
    if constexpr (kMode.memory) {
      do {
        auto& transfer = transfers_[made];
        const std::uint32_t event = add_event(transfer.to, p_.copy_bytes[transfer.tensor]);
        if constexpr (kMode.timeline) transfer.start_event = event;
      } while (next_destination(made));
    }
  }

  [[gnu::always_inline]] void end_transfer(std::uint32_t made) {
    [[maybe_unused]] std::uint32_t event = 0;
    if constexpr (kMode.memory) {
      event = add_event(transfers_[made].from, -p_.sole_bytes[transfers_[made].tensor]);
    }
    do {
      const auto& transfer = transfers_[made];
      if constexpr (kMode.memory) {
        transfers_[made].end_event = event;
        // A copy with several consumers goes with the last of them (find_peaks).
        const bool one = (transfer.edges & Workspace::kMore) == 0;
        if (one)
          memory_[edge_target_[transfer.edges] & ~kLastEdge].release +=
              p_.copy_bytes[transfer.tensor];
      }
      w_.for_each_edge(transfer.edges,
                       [this](std::uint32_t edge) { satisfy(edge_target_[edge] & ~kLastEdge); });
    } while (next_destination(made));
  }

  // Goes on to the next destination that the same transfer serves; false after the last.
  bool next_destination(std::uint32_t& made) const {
    if constexpr (kMode.special) {
      made = w_.multicasts[made].also;
      return made != kNone;
    }
    return false;
  }

  // ---- running items and memory events

  [[gnu::always_inline]] void push_running(Nanoseconds end, std::uint32_t slot) {
    if (running_tail_ == running_size_) {
      std::copy(running_ + running_head_, running_ + running_tail_, running_);
      running_tail_ -= running_head_;
      running_head_ = 0;
    }
    const std::uint64_t key = (static_cast<std::uint64_t>(end) << slot_bits_) | slot;
    std::uint32_t at = running_tail_++;
    for (; at > running_head_ && running_[at - 1] > key; --at) running_[at] = running_[at - 1];
    running_[at] = key;
  }

  void remove_running(Nanoseconds end, std::uint32_t slot) {
    const std::uint64_t key = (static_cast<std::uint64_t>(end) << slot_bits_) | slot;
    std::uint64_t* const last = running_ + running_tail_;
    std::uint64_t* const at = std::lower_bound(running_ + running_head_, last, key);
    std::copy(at + 1, last, at);
    --running_tail_;
  }

  void note_start(std::uint32_t node, std::uint32_t device) {
    const std::uint32_t event = add_event(device, p_.memory[node].alloc_at_start);
    if constexpr (kMode.timeline) w_.start_event[node] = event;
  }

  [[gnu::always_inline]] std::uint32_t add_event(std::uint32_t device, Bytes change) {
    std::uint32_t tag = device;
    if constexpr (kMode.instants) {
      if (w_.event_instant_of_device[device] != instant_) {
        w_.event_instant_of_device[device] = instant_;
        tag |= Workspace::kNewInstant;
      }
    }
    events_[num_events_] = Workspace::event(change, tag);
    if constexpr (kMode.timeline) w_.event_time[num_events_] = now_;
    return num_events_++;
  }

  const SimProgram& p_;
  Workspace& w_;
  const ReadyOrder& order_;

  // The arrays of the inner loops, one step away instead of three.
  const std::uint32_t num_devices_ = p_.num_devices;
  const int slot_bits_ = p_.slot_bits;
  const std::uint64_t slot_mask_ = (std::uint64_t{1} << slot_bits_) - 1;
  const std::uint32_t* const edge_target_ = p_.edge_target.data();
  std::uint32_t* const words_ = w_.words.data();
  Workspace::NodeMemory* const memory_ = w_.memory.data();
  Workspace::DeviceState* const devices_ = w_.devices.data();
  Workspace::ChannelState* const channels_ = w_.channels.data();
  Workspace::TransferState* const transfers_ = w_.transfers.data();
  Workspace::LatestTransfer* const transfer_to_ = w_.transfer_to.data();
  std::uint32_t* const next_edge_ = w_.next_edge.data();
  std::int64_t* const events_ = w_.events.data();
  std::uint32_t* const startable_ = w_.startable.data();
  std::uint64_t* const running_ = w_.running.data();
  const std::uint32_t running_size_ = static_cast<std::uint32_t>(w_.running.size());

  Nanoseconds now_ = 0;
  Nanoseconds step_ = 0;
  Nanoseconds limit_ = 0;
  bool lost_ = false;     // the step will not be below the limit
  bool starting_ = true;  // sources have not all been dealt with
  std::uint32_t instant_ = 0;
  std::uint32_t running_head_ = 0;
  std::uint32_t running_tail_ = 0;
  std::uint32_t num_startable_ = 0;
  std::uint32_t num_instant_ = 0;
  std::uint32_t num_transfers_ = 0;
  std::uint32_t num_events_ = 0;
};

}  // namespace emplace
