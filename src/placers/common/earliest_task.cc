// Every device has two heaps: ops whose data come later than it is free, by that time, and ops
// whose data are there, by index. The top of either is the op that it would start next, if what was
// noted of it still holds.
//
// Invariant: a queued op has an entry for each device where it may still go, and an entry is at
// most the true time at which its data are ready. Commits only delay data, as channels fill up,
// except where a tensor was sent to the device or the group was decided: `follow_up` adds new
// entries then. So an op that is taken out with an entry that is too early can be put back, and one
// whose entry is right is the earliest. Refreshing stops after 64 ops for each device and step, so
// the choice is then the best of what was looked at: not exact, but never quadratic. An op for
// which no device has room is forced onto the one with the most.
//
// With n ops and D devices: O(D) choices for each commit, of O(64 (inputs + log n)) each at worst.
// References in the header.
#include "placers/common/earliest_task.h"

#include <algorithm>

#include "base/check.h"

namespace emplace {
namespace {

// A transfer that is added delays all that wait for its channel. Refreshing every estimate after
// every step would be quadratic, so that a step refreshes this many of a device's soonest ops.
constexpr int kRefreshes = 64;

}  // namespace

EarliestTaskFirst::EarliestTaskFirst(ListSchedule& schedule, const FavouriteChildren* favourites)
    : schedule_(schedule),
      problem_(schedule.problem()),
      favourites_(favourites),
      missing_(problem_.num_ops(), 0),
      state_(problem_.num_ops(), State::kBlocked),
      entries_(problem_.num_ops(), 0),
      forced_(problem_.num_ops(), 0),
      queues_(problem_.num_devices()) {
  const Graph& graph = problem_.graph();
  std::vector<std::pair<OpId, OpId>> control;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const OpId other : graph.after(op)) control.emplace_back(other, op);
    missing_[op] = static_cast<std::uint32_t>(schedule_.inputs(op).size() + graph.after(op).size());
  }
  control_successors_ = Csr<OpId>::from_pairs(graph.num_ops(), control);
}

bool EarliestTaskFirst::run() {
  for (OpId op = problem_.num_ops(); op-- > 0;) {
    if (missing_[op] == 0) newly_ready_.push_back(op);
  }
  if (!settle_ready()) return false;
  while (true) {
    Choice best;
    forced_any_ = false;
    for (const DeviceId device : schedule_.devices()) best = std::min(best, best_on(device));
    if (failed_) return false;
    if (forced_any_) continue;  // a device that was asked before may now have a sooner op
    if (best.op == kNoOp) break;
    if (!commit(best) || !settle_ready()) return false;
  }
  const bool complete =
      std::all_of(state_.begin(), state_.end(), [](State state) { return state == State::kDone; });
  EMPLACE_CHECK(complete);
  return true;
}

// Ops that take no time start when they are ready and never wait for a device, so they are done at
// once; the others queue.
bool EarliestTaskFirst::settle_ready() {
  while (!newly_ready_.empty()) {
    const OpId op = newly_ready_.back();
    newly_ready_.pop_back();
    if (schedule_.floats(op)) {
      state_[op] = State::kDone;
      release_successors(op);
    } else if (schedule_.instant(op)) {
      if (!commit_instant(op)) return false;
    } else if (!enqueue(op)) {
      return false;
    }
  }
  return true;
}

void EarliestTaskFirst::release_successors(OpId op) {
  const auto count_down = [&](OpId successor) {
    if (--missing_[successor] == 0) newly_ready_.push_back(successor);
  };
  for (const TensorId tensor : problem_.graph().outputs(op)) {
    for (const OpId consumer : problem_.graph().consumers(tensor)) count_down(consumer);
  }
  for (const OpId successor : control_successors_[op]) count_down(successor);
}

bool EarliestTaskFirst::commit_instant(OpId op) {
  Choice best;
  const std::vector<DeviceId> candidates = schedule_.candidates(op);
  for (const DeviceId device : candidates) {
    best = std::min(best, Choice{schedule_.data_ready(op, device), op, device});
  }
  return best.start != ListSchedule::kNever && commit(best);
}

bool EarliestTaskFirst::enqueue(OpId op) {
  state_[op] = State::kQueued;
  const std::vector<DeviceId> candidates = schedule_.candidates(op);
  for (const DeviceId device : candidates) {
    const Nanoseconds ready = schedule_.data_ready(op, device);
    if (ready != ListSchedule::kNever) push(op, device, ready);
  }
  return entries_[op] > 0;
}

void EarliestTaskFirst::push(OpId op, DeviceId device, Nanoseconds ready) {
  queues_[device].waiting.emplace(ready, op);
  ++entries_[op];
}

// Whether a queue's entry is still one to choose.
bool EarliestTaskFirst::stands(OpId op, DeviceId device) {
  if (state_[op] != State::kQueued || !schedule_.may_go(op, device)) return false;
  return forced_[op] != 0 || schedule_.has_room(op, device);
}

// An entry was taken out of its queue for good. An op that has none left but still waits goes where
// there is most room.
void EarliestTaskFirst::drop(OpId op) {
  --entries_[op];
  if (entries_[op] > 0 || state_[op] != State::kQueued) return;
  forced_[op] = 1;
  forced_any_ = true;
  if (!enqueue(op)) failed_ = true;
}

EarliestTaskFirst::Choice EarliestTaskFirst::best_on(DeviceId device) {
  return std::min(best_favourite(device), best_other(device));
}

EarliestTaskFirst::Choice EarliestTaskFirst::best_favourite(DeviceId device) {
  DeviceQueue& queue = queues_[device];
  const OpId op = queue.favourite;
  if (op == kNoOp) return {};
  if (state_[op] == State::kDone || (state_[op] == State::kQueued && !stands(op, device))) {
    queue.favourite = kNoOp;
    return {};
  }
  if (state_[op] == State::kBlocked) return {};
  const Nanoseconds ready = schedule_.data_ready(op, device);
  if (ready == ListSchedule::kNever) return {};
  return {std::max(ready, schedule_.device_end(device)), op, device};
}

EarliestTaskFirst::Choice EarliestTaskFirst::best_other(DeviceId device) {
  DeviceQueue& queue = queues_[device];
  const Nanoseconds idle = schedule_.device_end(device);
  const bool awake = queue.favourite != kNoOp && queue.awake_until > idle;
  const Nanoseconds free = awake ? queue.awake_until : idle;
  Choice best;
  for (int refreshed = 0; refreshed < kRefreshes;) {
    while (!queue.waiting.empty() && queue.waiting.top().first <= free) {
      queue.available.push(queue.waiting.top().second);
      queue.waiting.pop();
    }
    const bool available = !queue.available.empty();
    if (!available && queue.waiting.empty()) break;
    const OpId op = available ? queue.available.top() : queue.waiting.top().second;
    const Nanoseconds expected = available ? free : queue.waiting.top().first;
    const bool standing = stands(op, device);
    const Nanoseconds ready = standing ? schedule_.data_ready(op, device) : ListSchedule::kNever;
    if (ready <= expected) {
      const bool now = awake && ready <= idle && urgent(op, idle);
      return std::min(best, Choice{now ? idle : std::max(ready, free), op, device});
    }
    if (available) {
      queue.available.pop();
    } else {
      queue.waiting.pop();
    }
    if (ready == ListSchedule::kNever) {
      drop(op);
      if (failed_) break;
    } else {
      queue.waiting.emplace(ready, op);
      best = std::min(best, Choice{ready, op, device});
      ++refreshed;
    }
  }
  return best;
}

bool EarliestTaskFirst::urgent(OpId op, Nanoseconds time) {
  if (schedule_.device_of_group(problem_.group_of(op)) != kNoDevice) return true;
  const auto devices = schedule_.devices();
  return std::all_of(devices.begin(), devices.end(), [&](DeviceId device) {
    return !schedule_.may_go(op, device) || schedule_.data_ready(op, device) <= time;
  });
}

bool EarliestTaskFirst::commit(const Choice& choice) {
  schedule_.commit(choice.op, choice.device);
  if (schedule_.stuck()) return false;
  state_[choice.op] = State::kDone;
  if (!schedule_.instant(choice.op)) keep_awake(choice.op, choice.device);
  follow_up();
  release_successors(choice.op);
  return true;
}

void EarliestTaskFirst::keep_awake(OpId op, DeviceId device) {
  DeviceQueue& queue = queues_[device];
  queue.favourite = kNoOp;
  if (favourites_ == nullptr) return;
  const OpId child = favourites_->child[op];
  if (child == kNoOp || state_[child] == State::kDone) return;
  // A device that cannot take the child has no reason to wait for it.
  if (!schedule_.may_go(child, device) || !schedule_.has_room(child, device)) return;
  queue.favourite = child;
  queue.awake_until = schedule_.finish(op) + favourites_->delay[op];
}

// What was committed may let other ops start sooner than their entries say, or on a device where
// they have none: their group got its device, or a tensor that they read was sent there.
void EarliestTaskFirst::follow_up() {
  const auto refresh = [&](OpId op, DeviceId device) {
    if (state_[op] != State::kQueued || !stands(op, device)) return;
    const Nanoseconds ready = schedule_.data_ready(op, device);
    if (ready != ListSchedule::kNever) push(op, device, ready);
  };
  for (const GroupId group : schedule_.take_decided()) {
    for (const OpId op : problem_.group_ops(group)) refresh(op, schedule_.device_of_group(group));
  }
  for (const auto& [tensor, device] : schedule_.take_sent()) {
    for (const OpId op : problem_.graph().consumers(tensor)) refresh(op, device);
  }
}

}  // namespace emplace
