// What one simulation writes: one per thread, sized once, so that evaluations allocate nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "sim/passing.h"
#include "sim/program.h"
#include "sim/rank_sets.h"
#include "sim/simulator.h"

namespace emplace {

class Simulator::Workspace {
 public:
  explicit Workspace(const SimProgram& program);

  // Makes room for what only runs with times note.
  void note_times(const SimProgram& program);
  // After such a run.
  Nanoseconds start_of(const SimProgram& program, OpId op) const;

  // The low bits of a node's word hold its device, the others count the inputs still missing.
  static constexpr std::uint32_t kDeviceBits = 10;
  static constexpr std::uint32_t kDeviceMask = (1U << kDeviceBits) - 1;
  static constexpr std::uint32_t kOneInput = 1U << kDeviceBits;
  static_assert(Cluster::kMaxDevices <= kOneInput);

  // A memory event in one word (a Problem's bytes fit in 50 bits): by how many bytes the use of a
  // device changes, above a tag, which is the device and whether this is the first event on it at a
  // new instant.
  static constexpr std::uint32_t kNewInstant = 1U << kDeviceBits;
  static constexpr int kTagBits = kDeviceBits + 1;
  static constexpr std::int64_t event(Bytes change, std::uint32_t tag) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(change) << kTagBits) + tag;
  }
  static constexpr Bytes change_of(std::int64_t event) { return event >> kTagBits; }
  static constexpr std::uint32_t tag_of(std::int64_t event) {
    return static_cast<std::uint32_t>(event) & ((1U << kTagBits) - 1);
  }

  struct NodeMemory {
    Bytes release;  // memory on its device that only this node still uses
    std::uint32_t finish_event;
  };

  // Sums of a device's work that are added up side by side: neighbours are mostly on one device,
  // and would wait for each other.
  static constexpr std::uint32_t kWorkSums = 4;

  // Ready ops wait in queue[head .. tail) in FIFO order; by rank, in the device's set of `waiting`,
  // which has tail - head of them.
  struct DeviceState {
    std::uint32_t* queue;
    const Nanoseconds* durations;
    Nanoseconds stamp;  // the instant of the latest arrival
    std::uint32_t head;
    std::uint32_t tail;
    std::uint32_t mark;  // where the arrivals of that instant begin
    std::uint32_t node;  // running now
    bool idle;
    bool finished;  // its op has ended and only the gap keeps it unavailable
    bool unsorted;  // arrivals from `mark` on are not in order yet

    // By FIFO: what arrives at one instant waits in the order of nodes.
    void add_arrival(std::uint32_t arrived) {
      constexpr std::uint32_t kLongInsertion = 64;
      std::uint32_t at = tail++;
      if (at - mark > kLongInsertion) {
        unsorted = unsorted || queue[at - 1] > arrived;
      } else {
        for (; at > mark && queue[at - 1] > arrived; --at) queue[at] = queue[at - 1];
      }
      queue[at] = arrived;
    }
    void sort_arrivals() {
      if (!unsorted) return;
      std::sort(queue + mark, queue + tail);
      unsorted = false;
    }
  };

  // Queued transfers form a list through TransferState::next.
  struct ChannelState {
    Nanoseconds stamp;
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t mark;  // the last one queued before that instant
    std::uint32_t near;  // the last one before the destinations of the latest tensor, or `mark`
    std::uint32_t running;
    bool idle;
    bool finished;
  };

  struct TransferState {
    Nanoseconds length;
    std::uint32_t tensor;  // the program's number
    std::uint32_t edges;   // list of the consumers' edges: one, with kMore if next_edge has another
    std::uint32_t next;    // in the channel's queue
    std::uint32_t start_event;  // for timelines only
    std::uint32_t end_event;
    DeviceId from;
    DeviceId to;
  };

  static constexpr std::uint32_t kMore = 0x80000000;

  // Calls `visit` with each edge of a transfer's list.
  template <class Visit>
  void for_each_edge(std::uint32_t edges, Visit visit) const {
    for (;;) {
      visit(edges & ~kMore);
      if ((edges & kMore) == 0) return;
      edges = next_edge[edges & ~kMore];
    }
  }

  // What only special links need of a transfer.
  struct MulticastState {
    Nanoseconds hold;
    std::uint32_t also;  // the next of the further destinations that this transfer serves
    DeviceId lowest_to;  // of its destinations
    bool carried;        // by the transfer of another destination
  };

  std::vector<std::uint32_t> words;  // by node
  std::vector<NodeMemory> memory;    // by node
  std::vector<DeviceState> devices;
  std::vector<ChannelState> channels;
  std::vector<PassingTransfers> passing;  // by channel; of those that are unlimited
  std::vector<Nanoseconds> idle_since;    // by device; where there is a limit
  std::vector<Nanoseconds> work;          // by device, kWorkSums each; likewise
  std::vector<Nanoseconds> earliest_end;  // by device; likewise
  std::vector<std::uint32_t> queue;       // all devices' queues, end to end
  RankSets waiting;                       // of ready nodes, a set for each device
  std::vector<std::uint64_t> running;     // sorted keys end_time << slot_bits | slot
  std::vector<std::uint32_t> startable;   // idle slots that have work
  std::vector<std::uint32_t> instant;     // stack of the nodes of no length that are ready
  std::vector<TransferState> transfers;
  std::vector<MulticastState> multicasts;  // by transfer
  struct LatestTransfer {
    std::uint32_t tensor;
    std::uint32_t transfer;
  };
  std::vector<LatestTransfer> transfer_to;  // by device: the latest transfer made to it
  std::vector<std::uint32_t> multicast_on;  // by channel: the latest multicast made on it
  std::vector<std::uint32_t> next_edge;     // by edge

  std::vector<std::int64_t> events;                    // in the order in which they happen
  std::vector<std::uint32_t> event_instant_of_device;  // by device: instant of its latest event
  std::vector<std::uint32_t> last_use;                 // by root: event of its last use
  std::vector<Bytes> used;                             // by device
  std::vector<Bytes> peaks;                            // by device

  // Of runs with times.
  std::vector<Nanoseconds> event_time;
  std::vector<std::uint32_t> start_event;     // by node
  std::vector<std::uint32_t> ran_before;      // by node that takes time: the one before it there
  std::vector<std::uint32_t> first_transfer;  // by the graph's tensor (read_hot_spots)

  std::uint32_t num_transfers = 0;
  std::uint32_t num_events = 0;

  std::uint32_t close_looks = 0;  // evaluations that find peaks without asking whether they must
};

}  // namespace emplace
