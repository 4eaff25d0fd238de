// Earliest task first: of all ready ops and devices, repeatedly the pair that can start soonest.
// Shared by m-ETF and m-SCT (Jeon et al., SoCC 2020; Hwang et al. 1989; Hanen and Munier 1995).
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "placers/common/list_schedule.h"

namespace emplace {

// For each op the one successor that should follow it on its device, or kNoOp, and how long what
// the successor reads would take to another device.
struct FavouriteChildren {
  std::vector<OpId> child;
  std::vector<Nanoseconds> delay;
};

// Commits all ops of `schedule` that do not float. Pairs that start at the same time are taken by
// op index, then device index.
//
// With favourites, a device that ran an op whose favourite child is still to come is awake for the
// child until the child could run anywhere else without delay, and meanwhile starts nothing else
// but what is urgent: an op whose data would be ready in time on every device.
class EarliestTaskFirst {
 public:
  EarliestTaskFirst(ListSchedule& schedule, const FavouriteChildren* favourites);

  // False when some op has no candidate.
  bool run();

 private:
  using Waiting = std::pair<Nanoseconds, OpId>;  // when its data are ready, and the op
  template <class T>
  using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;

  struct DeviceQueue {
    MinHeap<Waiting> waiting;  // data not ready when the device becomes free
    MinHeap<OpId> available;   // data ready by then, so that the index decides
    OpId favourite = kNoOp;    // the device is awake for this op
    Nanoseconds awake_until = 0;
  };
  struct Choice {
    Nanoseconds start = ListSchedule::kNever;
    OpId op = kNoOp;
    DeviceId device = kNoDevice;

    friend bool operator<(const Choice& a, const Choice& b) {
      if (a.start != b.start) return a.start < b.start;
      return a.op != b.op ? a.op < b.op : a.device < b.device;
    }
  };

  bool settle_ready();
  bool commit_instant(OpId op);
  bool enqueue(OpId op);
  void push(OpId op, DeviceId device, Nanoseconds ready);
  void release_successors(OpId op);
  bool stands(OpId op, DeviceId device);
  void drop(OpId op);
  Choice best_on(DeviceId device);
  Choice best_favourite(DeviceId device);
  Choice best_other(DeviceId device);
  bool urgent(OpId op, Nanoseconds time);
  bool commit(const Choice& choice);
  void keep_awake(OpId op, DeviceId device);
  void follow_up();

  ListSchedule& schedule_;
  const Problem& problem_;
  const FavouriteChildren* favourites_;
  Csr<OpId> control_successors_;
  std::vector<std::uint32_t> missing_;  // by op: tensors and control dependencies still to come
  enum class State : std::uint8_t { kBlocked, kQueued, kDone };
  std::vector<State> state_;
  std::vector<std::uint32_t> entries_;  // by op: its entries in all queues
  std::vector<std::uint8_t> forced_;    // by op: no device has room, so room is not asked for
  std::vector<OpId> newly_ready_;
  std::vector<DeviceQueue> queues_;  // by device
  bool forced_any_ = false;          // in the present step
  bool failed_ = false;              // some op has no candidate
};

}  // namespace emplace
