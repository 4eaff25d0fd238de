// A schedule that grows op by op, for the list schedulers: when each device and channel is taken,
// which tensor is where from when on, and which device each colocation group got.
//
// The first op of a group that is committed fixes the device of the whole group. Ops that take no
// time and depend on nothing that does (parameters, inputs, and what merely reshapes them) float:
// they are ready at once everywhere, so an earliest time says nothing about where they belong. They
// go where the first op that reads them goes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "placer/memory.h"

#include "placers/common/gap_timeline.h"

namespace emplace {

// By op: whether it takes no time on any device that it may use; whether it floats.
std::vector<std::uint8_t> instant_ops(const Problem& problem);
std::vector<std::uint8_t> floating_ops(const Problem& problem);

class ListSchedule {
 public:
  struct Options {
    bool insertion = false;  // ops may start in gaps between ops that were committed before
    bool contention = true;  // a channel carries one transfer at a time
  };

  static constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

  // Only `devices` are used. They need not all be linked, but then a group may find no device that
  // is linked with those of its neighbours (see `candidates`).
  ListSchedule(const Problem& problem, MemoryLedger& ledger, std::span<const DeviceId> devices,
               const Options& options);

  const Problem& problem() const { return *problem_; }
  const MemoryLedger& ledger() const { return *ledger_; }
  std::span<const DeviceId> devices() const { return device_list_; }
  // Distinct tensors that the op reads.
  std::span<const TensorId> inputs(OpId op) const { return inputs_[op]; }
  // Whether the op takes no time on any device that it may use.
  bool instant(OpId op) const { return instant_[op] != 0; }
  // Whether the op floats. Such an op is never committed by itself: it follows its group.
  bool floats(OpId op) const { return floating_[op] != 0; }
  DeviceId device_of_group(GroupId group) const { return device_of_group_[group]; }
  Nanoseconds finish(OpId op) const { return finish_[op]; }
  Nanoseconds start(OpId op) const { return start_[op]; }
  Nanoseconds device_end(DeviceId device) const { return devices_[device].end(); }

  // Where the op may go now: its group's device once it has one; else the devices with room for the
  // group and for what it reads that floats, or at least for the group, or the one with the most
  // room. None when no device is linked with those of all its neighbours. Valid until the next
  // call.
  const std::vector<DeviceId>& candidates(OpId op);
  // What the op's group needs, with the groups without a device whose floating ops the op reads.
  Bytes need_with_floating(OpId op);
  // Whether the op's group is on the device or may still go there, room left aside.
  bool may_go(OpId op, DeviceId device) const;
  // Whether the device is the group's, or has room for the group and for what it reads that floats.
  bool has_room(OpId op, DeviceId device);

  // The earliest time at which all that the op waits for is on the device. All ops that it depends
  // on must be committed or float.
  Nanoseconds data_ready(OpId op, DeviceId device) { return bring_inputs(op, device, false); }
  // The earliest start given that time.
  Nanoseconds start_from(OpId op, DeviceId device, Nanoseconds ready) const;

  void commit(OpId op, DeviceId device);
  // Whether links were missing for a floating group that had to follow; the schedule is then void.
  bool stuck() const { return stuck_; }

  // Groups that got a device since the last call.
  std::vector<GroupId> take_decided() { return std::exchange(decided_, {}); }
  // Transfers, as (tensor, device), that were added since the last call.
  std::vector<std::pair<TensorId, DeviceId>> take_sent() { return std::exchange(sent_, {}); }

  // Gives the groups that nothing reads a device each. May leave the schedule `stuck`.
  void place_rest();
  Placement placement() const;
  // Priorities that make a device take its ops in the order of their starts here.
  Schedule start_order() const;

 private:
  struct Arrival {  // of a tensor on a device that it was sent to
    DeviceId device;
    ChannelId channel;
    Nanoseconds start;
    Nanoseconds finish;
    std::uint32_t next;
  };
  struct Pending {  // a tensor that must still be sent
    Nanoseconds queued;
    TensorId tensor;
    DeviceId from;
  };
  static constexpr std::uint32_t kNoArrival = 0xffffffffU;

  bool may_use(GroupId group, DeviceId device) const {
    return usable_[device] != 0 && problem_->allowed(group, device);
  }
  bool linked_with_neighbours(GroupId group, DeviceId device) const;
  const Arrival* find_arrival(TensorId tensor, DeviceId device) const;
  Nanoseconds floating_ready(TensorId tensor, DeviceId device) const;
  Nanoseconds bring_inputs(OpId op, DeviceId device, bool commit);
  Nanoseconds send(const Pending& item, DeviceId to, bool commit);
  void decide(GroupId group, DeviceId device);
  void decide_with_floating(OpId op, DeviceId device);
  void follow_inputs(OpId op, DeviceId device);
  DeviceId device_for_floating(GroupId group, DeviceId wanted) const;
  void run_floating_ops(std::span<const GroupId> groups);
  void run(OpId op, DeviceId device);

  const Problem* problem_;
  MemoryLedger* ledger_;
  Options options_;
  bool fully_linked_;
  std::vector<std::uint8_t> usable_;  // by device
  std::vector<DeviceId> device_list_;
  Csr<TensorId> inputs_;
  std::vector<std::uint8_t> instant_;
  std::vector<std::uint8_t> floating_;

  std::vector<DeviceId> device_of_group_;
  bool stuck_ = false;
  std::vector<Nanoseconds> start_;
  std::vector<Nanoseconds> finish_;
  std::vector<GapTimeline> devices_;
  std::vector<Nanoseconds> channel_end_;
  std::vector<std::uint32_t> first_arrival_;  // by tensor
  std::vector<Arrival> arrivals_;
  std::vector<GroupId> decided_;
  std::vector<std::pair<TensorId, DeviceId>> sent_;

  // Scratch space of one call.
  std::vector<DeviceId> candidates_;
  std::vector<Pending> pending_;
  std::vector<GroupId> floating_inputs_;
  std::vector<GroupId> newly_decided_;
  std::vector<Nanoseconds> channel_cursor_;
  std::vector<ChannelId> moved_cursors_;
};

// The placement that `fill` builds within memory (fit_memory), with its order of starts where
// wanted, else FIFO. `fill` commits every op that does not float and returns false when it finds no
// candidate for one, for want of links; it is then called again with mutually linked devices only,
// and a note names the others.
PlaceResult place_by_list(const Problem& problem, Evaluator& evaluator, const Budget& budget,
                          const ListSchedule::Options& options, bool keep_order,
                          const std::function<bool(ListSchedule&)>& fill);

}  // namespace emplace
