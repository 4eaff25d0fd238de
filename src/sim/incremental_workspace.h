// What re-evaluating moves remembers of the base run, and what it writes while it simulates.
//
// The record is a log, not a list of states: when each node and transfer joined its queue, started
// and finished, in instants of the base run. The state at the end of any instant follows from it:
// queues and running items from a list of what was alive at an earlier instant and what has joined
// since, and everything else (missing inputs, uses of memory) node by node, only where it is asked
// for.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "sim/incremental_profile.h"
#include "sim/incremental_tables.h"
#include "sim/passing.h"
#include "sim/program.h"
#include "sim/simulator.h"

namespace emplace {

struct MoveWorkspace {
  MoveWorkspace(const SimProgram& program, const MoveTables& tables);

  static constexpr std::uint32_t kNone = SimProgram::kNone;
  static constexpr std::uint32_t kMore = 0x80000000;      // in an edge: next_edge has another
  static constexpr std::uint32_t kTransfer = 0x80000000;  // in an item: a transfer, else a node

  // Instants of the base run count from 1; 0 is the time before the step. Sources finish at 1.
  struct Node {
    std::uint32_t ready;
    std::uint32_t start;
    std::uint32_t finish;
    std::uint32_t segment;  // in which `missing` was counted
    std::uint32_t missing;  // inputs
    DeviceId device;        // of the placement that is simulated
    bool moved;             // away from the base's device
  };

  struct Transfer {
    Nanoseconds length;
    Nanoseconds hold;
    std::uint32_t tensor;
    std::uint32_t edges;  // list of the consumers' edges: one, with kMore if next_edge has another
    std::uint32_t also;   // the next of the further destinations that this transfer serves
    std::uint32_t next;   // in the channel's queue
    std::uint32_t queued;
    std::uint32_t start;
    std::uint32_t end;
    std::uint32_t segment;  // in which `uses` was counted
    std::uint32_t uses;     // of the copy
    ChannelId channel;
    DeviceId from;
    DeviceId to;
    DeviceId lowest_to;  // of its destinations
    bool carried;        // by the transfer of another destination
  };

  // The end of an instant of the base run.
  struct Instant {
    Nanoseconds time;
    std::uint32_t finished;  // nodes, sources left out
    std::uint32_t busy;      // devices and channels
    std::uint32_t waiting;   // nodes and transfers in queues, or passing on unlimited channels
    std::uint32_t log_end;
  };

  // Everything that ran or waited at the end of an instant, queues in their order.
  struct Snapshot {
    std::uint32_t instant;
    std::uint32_t log_end;
    std::uint32_t items_begin;
    std::uint32_t items_end;
  };

  // ---- the base run
  std::vector<Node> nodes;
  std::vector<Transfer> transfers;  // then those that the candidate makes
  std::uint32_t num_base_transfers = 0;
  std::vector<std::uint32_t> next_edge;       // by edge, of the base's transfers
  std::vector<std::uint32_t> arrival;         // by input
  std::vector<std::uint32_t> input_transfer;  // by input from another device: what brings it
  std::vector<Instant> instants;
  bool quiet_start = false;        // nothing but sources finishes at instant 1
  std::vector<std::uint32_t> log;  // items in the order in which they joined their queues
  std::vector<Snapshot> snapshots;
  std::vector<std::uint32_t> snapshot_items;
  MemoryProfile profile;

  // ---- the run that is being simulated
  struct TensorState {
    std::uint32_t sent;        // the first of the base's transfers of it, which the others follow
    std::uint32_t evaluation;  // in which the moves touched its producer or a consumer
    std::uint32_t made;        // the first of the candidate's transfers of it
  };
  struct DeviceState {
    std::vector<std::uint32_t> queue;  // from `head` on: in FIFO order, or a heap of ranks
    const Nanoseconds* durations;
    std::uint32_t head;
    std::uint32_t node;
    bool idle;
    bool finished;  // its op has ended and only the gap keeps it unavailable

    bool empty() const { return head == queue.size(); }
  };
  struct ChannelState {
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t running;
    bool idle;
    bool finished;

    bool empty() const { return first == kNone; }
  };
  struct RootState {
    std::uint32_t segment;  // in which `uses` was counted
    std::uint32_t uses;
  };
  struct Latest {
    std::uint64_t round;
    std::uint32_t transfer;
  };

  // Numbers the stretches that are simulated without a jump, and the evaluations, so that nothing
  // need be cleared between them.
  std::uint32_t segment = 0;
  std::uint32_t evaluation = 0;
  std::uint64_t round = 0;   // of making a tensor's transfers
  std::uint64_t tick = 0;    // instants simulated
  std::uint32_t origin = 0;  // the instant of the base run after whose end the segment began

  std::int64_t simulated = 0;  // nodes finished in all evaluations, for those who count

  std::vector<TensorState> tensors;
  std::vector<DeviceState> devices;
  std::vector<ChannelState> channels;
  std::vector<PassingTransfers> passing;  // by channel; of those that are unlimited
  std::vector<RootState> roots;
  std::vector<std::uint64_t> running;    // sorted keys end_time << slot_bits | slot
  std::vector<std::uint32_t> arrivals;   // nodes that join queues at this instant
  std::vector<std::uint32_t> sent;       // transfers that do
  std::vector<std::uint32_t> instantly;  // nodes and transfers of no length to follow up
  std::vector<std::uint32_t> startable;  // idle slots that have work
  std::vector<Latest> transfer_to;       // by device
  std::vector<Latest> multicast_on;      // by channel
  std::vector<std::uint32_t> made_next_edge;

  std::vector<Bytes> used;                // by device
  std::vector<Bytes> peaks;               // exact where above capacity
  Bytes overflow = 0;                     // of these peaks
  std::vector<std::uint64_t> touched_at;  // by device: tick of the latest change
  std::vector<std::uint32_t> touched;     // devices whose use changed at this instant

  bool touched_by_moves(std::uint32_t tensor) const {
    return tensors[tensor].evaluation == evaluation;
  }
  // Whether the candidate made the transfer. While the base is recorded there are no others.
  bool made_by_moves(std::uint32_t made) const { return made >= num_base_transfers; }
  // What for_each_edge follows for such a transfer.
  const std::uint32_t* next_edge_of(std::uint32_t made) const {
    return (made_by_moves(made) ? made_next_edge : next_edge).data();
  }

  void clear_record();
  void begin_segment(std::uint32_t after);
  void begin_evaluation();
  void clear_peaks();
  void raise_peak(const SimProgram& program, std::uint32_t device, Bytes to);
  const Snapshot& snapshot_before(std::uint32_t instant) const;
};

}  // namespace emplace
