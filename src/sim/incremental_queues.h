// Who runs and who waits, on devices and channels, while moves are re-evaluated; how that follows
// from the record of the base run, and when it is the same as there (sim/incremental.h).
#pragma once

#include <algorithm>
#include <functional>

#include "sim/incremental_workspace.h"
#include "sim/program.h"

namespace emplace {

template <bool kFifo>
class MoveQueues {
 public:
  using Workspace = MoveWorkspace;

  MoveQueues(const SimProgram& program, Workspace& workspace, const ReadyOrder& order)
      : p_(program), w_(workspace), order_(order) {}
  ~MoveQueues() { clear(); }
  MoveQueues(const MoveQueues&) = delete;
  MoveQueues& operator=(const MoveQueues&) = delete;

  std::uint32_t num_busy() const { return tail_ - head_; }
  std::uint32_t num_waiting() const { return waiting_; }

  // ---- the running items, one per busy slot

  Nanoseconds next_end() const { return static_cast<Nanoseconds>(running_[head_] >> slot_bits_); }
  bool ends_by(Nanoseconds time) const { return head_ < tail_ && next_end() <= time; }
  std::uint32_t pop_running() { return slot_of(running_[head_++]); }

  [[gnu::always_inline]] void push_running(Nanoseconds end, std::uint32_t slot) {
    if (tail_ == running_size_) {
      std::copy(running_ + head_, running_ + tail_, running_);
      tail_ -= head_;
      head_ = 0;
    }
    const std::uint64_t key = (static_cast<std::uint64_t>(end) << slot_bits_) | slot;
    std::uint32_t at = tail_++;
    for (; at > head_ && running_[at - 1] > key; --at) running_[at] = running_[at - 1];
    running_[at] = key;
  }

  // ---- queues; what joins at one instant must do so in order

  [[gnu::always_inline]] void join(Workspace::DeviceState& state, std::uint32_t node) {
    ++waiting_;
    if constexpr (kFifo) {
      state.queue.push_back(node);
    } else {
      state.queue.push_back(order_.rank_of_node()[node]);
      std::push_heap(state.queue.begin(), state.queue.end(), std::greater<>{});
    }
  }

  [[gnu::always_inline]] std::uint32_t leave(Workspace::DeviceState& state) {
    --waiting_;
    if constexpr (kFifo) {
      const std::uint32_t node = state.queue[state.head++];
      if (state.empty()) {
        state.queue.clear();
        state.head = 0;
      }
      return node;
    } else {
      std::pop_heap(state.queue.begin(), state.queue.end(), std::greater<>{});
      const std::uint32_t node = node_of(state.queue.back());
      state.queue.pop_back();
      return node;
    }
  }

  void join(Workspace::ChannelState& state, std::uint32_t made) {
    ++waiting_;
    w_.transfers[made].next = kNone;
    (state.empty() ? state.first : w_.transfers[state.last].next) = made;
    state.last = made;
  }

  std::uint32_t leave(Workspace::ChannelState& state) {
    --waiting_;
    const std::uint32_t made = state.first;
    state.first = w_.transfers[made].next;
    return made;
  }

  // ---- channels that carry any number of transfers at once, none of which waits

  bool unlimited(ChannelId channel) const { return p_.unlimited[channel] != 0; }

  // Counts among those that wait, since the channel is one running item for all of them: it ends
  // when the first of them does.
  void pass(ChannelId channel, std::uint32_t made, Nanoseconds end) {
    ++waiting_;
    auto& passing = w_.passing[channel];
    const bool first = passing.empty() || end < passing.next_end();
    if (first && !passing.empty()) remove_running(passing.next_end(), num_devices_ + channel);
    if (first) push_running(end, num_devices_ + channel);
    passing.add(end, made);
  }
  // One that has ended by now, or kNone: then the channel runs on with the others.
  std::uint32_t take_passed(ChannelId channel, Nanoseconds now) {
    auto& passing = w_.passing[channel];
    if (!passing.empty() && passing.next_end() <= now) {
      --waiting_;
      return passing.take();
    }
    if (!passing.empty()) push_running(passing.next_end(), num_devices_ + channel);
    return kNone;
  }

  // The order of transfers that are queued at one instant: by tensor, then lowest destination.
  bool comes_before(std::uint32_t a, std::uint32_t b) const {
    const TensorId tensor_a = p_.tensor_id[w_.transfers[a].tensor];
    const TensorId tensor_b = p_.tensor_id[w_.transfers[b].tensor];
    if (tensor_a != tensor_b) return tensor_a < tensor_b;
    return w_.transfers[a].lowest_to < w_.transfers[b].lowest_to;
  }

  // ---- the base run

  // Everything is idle.
  void clear() {
    for (; head_ < tail_; ++head_) {
      const std::uint32_t slot = slot_of(running_[head_]);
      if (slot < num_devices_) {
        auto& state = w_.devices[slot];
        state.queue.clear();
        state.head = 0;
        state.idle = true;
        state.finished = false;
      } else {
        w_.channels[slot - num_devices_] = {kNone, kNone, kNone, true, false};
        w_.passing[slot - num_devices_].clear();
      }
    }
    head_ = tail_ = waiting_ = 0;
  }

  // As at the end of that instant of the base run, `shift` later.
  void restore(std::uint32_t instant, Nanoseconds shift) {
    clear();
    const auto& snapshot = w_.snapshot_before(instant);
    for (std::uint32_t i = snapshot.items_begin; i < snapshot.items_end; ++i)
      restore_item(w_.snapshot_items[i], instant, shift);
    for (std::uint32_t i = snapshot.log_end; i < w_.instants[instant].log_end; ++i)
      restore_item(w_.log[i], instant, shift);
  }

  // Whether the same items run, with the same time left at `now`, and wait, in the same order, as
  // at the end of that instant of the base run, provided that the same nodes have finished. It
  // suffices that they are as many and that each runs or waits there too.
  bool same_as(std::uint32_t instant, Nanoseconds now) const {
    const auto& base = w_.instants[instant];
    if (waiting_ != base.waiting || num_busy() != base.busy) return false;
    for (std::uint32_t i = head_; i < tail_; ++i) {
      const std::uint32_t slot = slot_of(running_[i]);
      if (slot >= num_devices_ && unlimited(slot - num_devices_)) continue;
      const auto left = static_cast<Nanoseconds>(running_[i] >> slot_bits_) - now;
      if (left != end_in_base(slot) - base.time) return false;
    }
    for (std::uint32_t i = head_; i < tail_; ++i) {
      const std::uint32_t slot = slot_of(running_[i]);
      if (!(slot < num_devices_ ? same_queue(w_.devices[slot], instant)
                                : same_channel(slot - num_devices_, instant, now))) {
        return false;
      }
    }
    return true;
  }

  // Notes all that is here, as at the end of `instant`.
  void take_snapshot(std::uint32_t instant) {
    auto& items = w_.snapshot_items;
    const auto begin = static_cast<std::uint32_t>(items.size());
    for (std::uint32_t i = head_; i < tail_; ++i) {
      const std::uint32_t slot = slot_of(running_[i]);
      if (slot < num_devices_) {
        const auto& state = w_.devices[slot];
        items.push_back(state.node);
        for (std::size_t at = state.head; at < state.queue.size(); ++at)
          items.push_back(node_of(state.queue[at]));
      } else {
        for (const auto& item : w_.passing[slot - num_devices_].items())
          items.push_back(item.made | kTransfer);
        if (unlimited(slot - num_devices_)) continue;
        const auto& state = w_.channels[slot - num_devices_];
        items.push_back(state.running | kTransfer);
        for (auto made = state.first; made != kNone; made = w_.transfers[made].next)
          items.push_back(made | kTransfer);
      }
    }
    w_.snapshots.push_back({instant, static_cast<std::uint32_t>(w_.log.size()), begin,
                            static_cast<std::uint32_t>(items.size())});
  }

 private:
  static constexpr std::uint32_t kNone = Workspace::kNone;
  static constexpr std::uint32_t kTransfer = Workspace::kTransfer;

  void remove_running(Nanoseconds end, std::uint32_t slot) {
    const std::uint64_t key = (static_cast<std::uint64_t>(end) << slot_bits_) | slot;
    std::uint64_t* const at = std::lower_bound(running_ + head_, running_ + tail_, key);
    std::copy(at + 1, running_ + tail_, at);
    --tail_;
  }

  std::uint32_t slot_of(std::uint64_t key) const {
    return static_cast<std::uint32_t>(key & slot_mask_);
  }

  std::uint32_t node_of(std::uint32_t entry) const {
    if constexpr (kFifo) return entry;
    return order_.node_of_rank()[entry];
  }

  void restore_item(std::uint32_t item, std::uint32_t instant, Nanoseconds shift) {
    if ((item & kTransfer) != 0) {
      restore_transfer(item & ~kTransfer, instant, shift);
    } else {
      restore_node(item, instant, shift);
    }
  }

  void restore_node(std::uint32_t node, std::uint32_t instant, Nanoseconds shift) {
    const auto& record = w_.nodes[node];
    if (record.moved) return;  // jumps lead to where none of them is under way
    auto& device = w_.devices[record.device];
    if (record.start > instant) {
      join(device, node);
      return;
    }
    const bool finished = record.finish <= instant;
    const Nanoseconds end =
        w_.instants[record.finish].time + (finished ? p_.gaps[record.device] : 0);
    if (end <= w_.instants[instant].time) return;
    device.node = node;
    device.idle = false;
    device.finished = finished;
    push_running(end + shift, record.device);
  }

  void restore_transfer(std::uint32_t made, std::uint32_t instant, Nanoseconds shift) {
    const auto& record = w_.transfers[made];
    auto& channel = w_.channels[record.channel];
    if (record.start > instant) {
      join(channel, made);
      return;
    }
    const bool finished = record.end <= instant;
    const Nanoseconds end = w_.instants[record.end].time + (finished ? record.hold : 0);
    if (end <= w_.instants[instant].time) return;
    if (unlimited(record.channel)) {
      pass(record.channel, made, end + shift);
      return;
    }
    channel.running = made;
    channel.idle = false;
    channel.finished = finished;
    push_running(end + shift, num_devices_ + record.channel);
  }

  // When what the slot is busy with ends in the base run.
  Nanoseconds end_in_base(std::uint32_t slot) const {
    if (slot < num_devices_) {
      const auto& state = w_.devices[slot];
      return w_.instants[w_.nodes[state.node].finish].time + (state.finished ? p_.gaps[slot] : 0);
    }
    const auto& state = w_.channels[slot - num_devices_];
    const auto& transfer = w_.transfers[state.running];
    return w_.instants[transfer.end].time + (state.finished ? transfer.hold : 0);
  }

  bool same_queue(const Workspace::DeviceState& state, std::uint32_t instant) const {
    std::uint32_t before = 0;
    std::uint32_t ready_before = 0;
    for (std::size_t i = state.head; i < state.queue.size(); ++i) {
      const std::uint32_t node = node_of(state.queue[i]);
      const std::uint32_t ready = w_.nodes[node].ready;
      if (ready > instant || w_.nodes[node].start <= instant) return false;
      if constexpr (kFifo) {
        if (ready < ready_before || (ready == ready_before && node < before)) return false;
        before = node;
        ready_before = ready;
      }
    }
    return true;
  }

  // What passes here has begun in the base run too, as its producer has finished there; it passes
  // there still if as much of it is left.
  bool same_channel(ChannelId channel, std::uint32_t instant, Nanoseconds now) const {
    if (!unlimited(channel)) return same_queue(w_.channels[channel], instant);
    const Nanoseconds base_now = w_.instants[instant].time;
    for (const auto& item : w_.passing[channel].items()) {
      const Nanoseconds base_end = w_.instants[w_.transfers[item.made].end].time;
      if (item.end - now != base_end - base_now) return false;
    }
    return true;
  }

  bool same_queue(const Workspace::ChannelState& state, std::uint32_t instant) const {
    std::uint32_t before = kNone;
    for (std::uint32_t made = state.first; made != kNone; made = w_.transfers[made].next) {
      const auto& transfer = w_.transfers[made];
      if (transfer.queued > instant || transfer.start <= instant) return false;
      if (before != kNone) {
        const std::uint32_t queued_before = w_.transfers[before].queued;
        if (transfer.queued < queued_before ||
            (transfer.queued == queued_before && comes_before(made, before))) {
          return false;
        }
      }
      before = made;
    }
    return true;
  }

  const SimProgram& p_;
  Workspace& w_;
  const ReadyOrder& order_;
  const std::uint32_t num_devices_ = p_.num_devices;
  const int slot_bits_ = p_.slot_bits;
  const std::uint64_t slot_mask_ = (std::uint64_t{1} << slot_bits_) - 1;
  std::uint64_t* const running_ = w_.running.data();
  const std::uint32_t running_size_ = static_cast<std::uint32_t>(w_.running.size());
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t waiting_ = 0;
};

}  // namespace emplace
