// An estimate of the schedule that the simulator would make. Invariant: committed ops have their
// start and finish, devices and channels the time that these take, and every group at most one
// device, with its memory in the ledger. `data_ready` and `start_from` ask without changing
// anything; `commit` does the same and keeps it.
//
// Not the simulator: a transfer comes after all those that were committed to its channel, whenever
// they were queued, and an op in the order of commits, or in a gap (insertion). Within one op,
// transfers over one channel follow each other in the order in which their producers finish. Gaps,
// holds and multicast count as they do there. Memory is what the ledger estimates; `place_by_list`
// simulates, and tries again with less capacity until the placement fits.
//
// Floating ops (see the header) are never committed by themselves: `decide_with_floating` gives
// their groups the device of the first reader, and what those read in turn. A query takes O(inputs
// * devices that hold them); with insertion, finding a gap is logarithmic (gap_timeline.h). Ours;
// what list schedulers such as HEFT need.
#include "placers/common/list_schedule.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

#include "placer/linked_devices.h"

namespace emplace {
namespace {

Csr<TensorId> distinct_inputs(const Graph& graph) {
  Csr<TensorId> result;
  result.reserve(graph.num_ops(), graph.num_edges());
  std::vector<TensorId> distinct;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    distinct.assign(graph.inputs(op).begin(), graph.inputs(op).end());
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    result.push_back(distinct);
  }
  return result;
}

}  // namespace

std::vector<std::uint8_t> instant_ops(const Problem& problem) {
  std::vector<std::uint8_t> instant(problem.num_ops(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const auto allowed = problem.allowed_devices(problem.group_of(op));
    const bool takes_no_time = std::all_of(allowed.begin(), allowed.end(), [&](DeviceId device) {
      return problem.duration(op, device) == 0;
    });
    instant[op] = takes_no_time ? 1 : 0;
  }
  return instant;
}

std::vector<std::uint8_t> floating_ops(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<std::uint8_t> floating = instant_ops(problem);
  const auto floats = [&](OpId op) { return floating[op] != 0; };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const auto inputs = graph.inputs(op);
    const auto after = graph.after(op);
    const bool depends_on_floating_alone =
        std::all_of(after.begin(), after.end(), floats) &&
        std::all_of(inputs.begin(), inputs.end(),
                    [&](TensorId tensor) { return floats(graph.producer(tensor)); });
    if (!depends_on_floating_alone) floating[op] = 0;
  }
  return floating;
}

ListSchedule::ListSchedule(const Problem& problem, MemoryLedger& ledger,
                           std::span<const DeviceId> devices, const Options& options)
    : problem_(&problem),
      ledger_(&ledger),
      options_(options),
      fully_linked_(problem.cluster().fully_linked()),
      usable_(problem.num_devices(), 0),
      device_list_(devices.begin(), devices.end()),
      inputs_(distinct_inputs(problem.graph())),
      instant_(instant_ops(problem)),
      floating_(floating_ops(problem)),
      device_of_group_(problem.num_groups(), kNoDevice),
      start_(problem.num_ops(), 0),
      finish_(problem.num_ops(), 0),
      devices_(problem.num_devices()),
      channel_end_(problem.cluster().num_channels(), 0),
      first_arrival_(problem.graph().num_tensors(), kNoArrival),
      channel_cursor_(problem.cluster().num_channels(), 0) {
  for (const DeviceId device : devices) usable_[device] = 1;
}

bool ListSchedule::linked_with_neighbours(GroupId group, DeviceId device) const {
  if (fully_linked_) return true;
  const Graph& graph = problem_->graph();
  const auto linked = [&](DeviceId from, DeviceId to) {
    return from == kNoDevice || to == kNoDevice || from == to ||
           problem_->cluster().link(from, to) != nullptr;
  };
  for (const OpId op : problem_->group_ops(group)) {
    for (const TensorId tensor : inputs_[op]) {
      const GroupId other = problem_->group_of(graph.producer(tensor));
      if (other != group && !linked(device_of_group_[other], device)) return false;
    }
    for (const TensorId tensor : graph.outputs(op)) {
      for (const OpId consumer : graph.consumers(tensor)) {
        const GroupId other = problem_->group_of(consumer);
        if (other != group && !linked(device, device_of_group_[other])) return false;
      }
    }
  }
  return true;
}

Bytes ListSchedule::need_with_floating(OpId op) {
  const Graph& graph = problem_->graph();
  const GroupId own = problem_->group_of(op);
  floating_inputs_.clear();
  for (const TensorId tensor : inputs_[op]) {
    const OpId producer = graph.producer(tensor);
    const GroupId group = problem_->group_of(producer);
    const bool follows = floats(producer) && device_of_group_[group] == kNoDevice;
    if (follows && group != own) floating_inputs_.push_back(group);
  }
  std::sort(floating_inputs_.begin(), floating_inputs_.end());
  floating_inputs_.erase(std::unique(floating_inputs_.begin(), floating_inputs_.end()),
                         floating_inputs_.end());
  Bytes need = ledger_->need(own);
  for (const GroupId group : floating_inputs_) need += ledger_->need(group);
  return need;
}

bool ListSchedule::may_go(OpId op, DeviceId device) const {
  const GroupId group = problem_->group_of(op);
  const DeviceId decided = device_of_group_[group];
  if (decided != kNoDevice) return decided == device;
  return may_use(group, device) && linked_with_neighbours(group, device);
}

bool ListSchedule::has_room(OpId op, DeviceId device) {
  if (device_of_group_[problem_->group_of(op)] == device) return true;
  return need_with_floating(op) <= ledger_->left(device);
}

const std::vector<DeviceId>& ListSchedule::candidates(OpId op) {
  const GroupId group = problem_->group_of(op);
  candidates_.clear();
  if (device_of_group_[group] != kNoDevice) {
    candidates_.push_back(device_of_group_[group]);
    return candidates_;
  }
  for (const DeviceId device : device_list_) {
    if (may_use(group, device) && linked_with_neighbours(group, device)) {
      candidates_.push_back(device);
    }
  }
  if (candidates_.size() <= 1) return candidates_;
  for (const Bytes need : {need_with_floating(op), ledger_->need(group)}) {
    const auto has_need = [&](DeviceId device) { return need <= ledger_->left(device); };
    if (std::none_of(candidates_.begin(), candidates_.end(), has_need)) continue;
    candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(),
                                     [&](DeviceId device) { return !has_need(device); }),
                      candidates_.end());
    return candidates_;
  }
  const DeviceId roomiest = *std::max_element(
      candidates_.begin(), candidates_.end(),
      [&](DeviceId a, DeviceId b) { return ledger_->left(a) < ledger_->left(b); });
  candidates_.assign(1, roomiest);
  return candidates_;
}

Nanoseconds ListSchedule::start_from(OpId op, DeviceId device, Nanoseconds ready) const {
  const Nanoseconds duration = problem_->duration(op, device);
  if (duration == 0) return ready;
  const Nanoseconds gap = problem_->cluster().device(device).gap;
  return devices_[device].find(ready, duration + gap, options_.insertion);
}

const ListSchedule::Arrival* ListSchedule::find_arrival(TensorId tensor, DeviceId device) const {
  for (std::uint32_t i = first_arrival_[tensor]; i != kNoArrival; i = arrivals_[i].next) {
    if (arrivals_[i].device == device) return &arrivals_[i];
  }
  return nullptr;
}

// A tensor whose producer has no device yet will be on the reader's, if it may be there.
Nanoseconds ListSchedule::floating_ready(TensorId tensor, DeviceId device) const {
  const GroupId group = problem_->group_of(problem_->graph().producer(tensor));
  if (may_use(group, device)) return 0;
  Nanoseconds soonest = kNever;
  for (const DeviceId from : device_list_) {
    if (!may_use(group, from)) continue;
    const Nanoseconds time = problem_->transfer_time(tensor, from, device);
    if (time != Problem::kNoLink) soonest = std::min(soonest, time);
  }
  return soonest;
}

Nanoseconds ListSchedule::bring_inputs(OpId op, DeviceId device, bool commit) {
  const Graph& graph = problem_->graph();
  Nanoseconds ready = 0;
  for (const OpId other : graph.after(op)) ready = std::max(ready, finish_[other]);
  pending_.clear();
  for (const TensorId tensor : inputs_[op]) {
    const OpId producer = graph.producer(tensor);
    const DeviceId from = device_of_group_[problem_->group_of(producer)];
    if (from == device) {
      ready = std::max(ready, finish_[producer]);
    } else if (from == kNoDevice) {
      ready = std::max(ready, floating_ready(tensor, device));
    } else if (const Arrival* arrival = find_arrival(tensor, device)) {
      ready = std::max(ready, arrival->finish);
    } else {
      pending_.push_back({finish_[producer], tensor, from});
    }
  }
  std::sort(pending_.begin(), pending_.end(), [](const Pending& a, const Pending& b) {
    return a.queued != b.queued ? a.queued < b.queued : a.tensor < b.tensor;
  });
  for (const Pending& item : pending_) ready = std::max(ready, send(item, device, commit));
  for (const ChannelId channel : moved_cursors_) channel_cursor_[channel] = 0;
  moved_cursors_.clear();
  return ready;
}

// When the tensor would arrive. A transfer comes after all that were committed to its channel, even
// where the channel has a gap earlier: the simulator serves a channel in the order of queueing, so
// that what slips in before others delays them, which can no longer be counted here. The cursors
// keep what one op waits for from sharing a channel's time while nothing is committed yet.
Nanoseconds ListSchedule::send(const Pending& item, DeviceId to, bool commit) {
  const Nanoseconds length = problem_->transfer_time(item.tensor, item.from, to);
  if (length == Problem::kNoLink) return kNever;
  const Link& link = *problem_->cluster().link(item.from, to);
  Nanoseconds start = item.queued;
  const Arrival* shared = nullptr;
  if (options_.contention && length > 0 && !link.unlimited) {
    for (std::uint32_t i = first_arrival_[item.tensor]; link.multicast && i != kNoArrival;
         i = arrivals_[i].next) {
      if (arrivals_[i].channel == link.channel) shared = &arrivals_[i];
    }
    if (shared != nullptr) {
      start = shared->start;
    } else {
      Nanoseconds& cursor = channel_cursor_[link.channel];
      const Nanoseconds taken = length + link.hold;
      start = std::max({item.queued, cursor, channel_end_[link.channel]});
      cursor = start + taken;
      moved_cursors_.push_back(link.channel);
      if (commit) channel_end_[link.channel] = cursor;
    }
  }
  const Nanoseconds arrives =
      std::max(start + length, shared != nullptr ? shared->finish : Nanoseconds{0});
  if (commit) {
    arrivals_.push_back(
        {to, length > 0 ? link.channel : kNoChannel, start, arrives, first_arrival_[item.tensor]});
    first_arrival_[item.tensor] = static_cast<std::uint32_t>(arrivals_.size() - 1);
    sent_.emplace_back(item.tensor, to);
  }
  return arrives;
}

void ListSchedule::run(OpId op, DeviceId device) {
  const Nanoseconds ready = bring_inputs(op, device, true);
  if (ready == kNever) {
    stuck_ = true;
    return;
  }
  start_[op] = start_from(op, device, ready);
  const Nanoseconds duration = problem_->duration(op, device);
  finish_[op] = start_[op] + duration;
  if (duration == 0) return;
  devices_[device].reserve(start_[op], duration + problem_->cluster().device(device).gap);
}

void ListSchedule::commit(OpId op, DeviceId device) {
  EMPLACE_DCHECK(!floats(op));
  decide_with_floating(op, device);
  if (!stuck_) run(op, device);
}

void ListSchedule::decide(GroupId group, DeviceId device) {
  EMPLACE_CHECK(device_of_group_[group] == kNoDevice);
  device_of_group_[group] = device;
  ledger_->add(group, device);
  decided_.push_back(group);
  newly_decided_.push_back(group);
}

DeviceId ListSchedule::device_for_floating(GroupId group, DeviceId wanted) const {
  DeviceId roomiest = kNoDevice;
  for (const DeviceId device : device_list_) {
    if (!may_use(group, device) || !linked_with_neighbours(group, device)) continue;
    if (device == wanted && ledger_->fits(group, device)) return wanted;
    if (roomiest == kNoDevice || ledger_->left(device) > ledger_->left(roomiest)) roomiest = device;
  }
  return roomiest;
}

void ListSchedule::follow_inputs(OpId op, DeviceId device) {
  for (const TensorId tensor : inputs_[op]) {
    const GroupId group = problem_->group_of(problem_->graph().producer(tensor));
    if (device_of_group_[group] != kNoDevice) continue;
    const DeviceId chosen = device_for_floating(group, device);
    if (chosen == kNoDevice) {
      stuck_ = true;
      return;
    }
    decide(group, chosen);
  }
}

void ListSchedule::decide_with_floating(OpId op, DeviceId device) {
  const GroupId own = problem_->group_of(op);
  newly_decided_.clear();
  if (device_of_group_[own] == kNoDevice) decide(own, device);
  follow_inputs(op, device);
  // A group that got a device takes along what its floating ops read, and so on.
  for (std::size_t i = 0; i < newly_decided_.size() && !stuck_; ++i) {
    const GroupId group = newly_decided_[i];
    for (const OpId member : problem_->group_ops(group)) {
      if (floats(member)) follow_inputs(member, device_of_group_[group]);
    }
  }
  if (!stuck_) run_floating_ops(newly_decided_);
}

void ListSchedule::run_floating_ops(std::span<const GroupId> groups) {
  std::vector<OpId> ops;
  for (const GroupId group : groups) {
    for (const OpId op : problem_->group_ops(group)) {
      if (floats(op)) ops.push_back(op);
    }
  }
  std::sort(ops.begin(), ops.end());
  for (const OpId op : ops) run(op, device_of_group_[problem_->group_of(op)]);
}

void ListSchedule::place_rest() {
  for (GroupId group = 0; group < problem_->num_groups() && !stuck_; ++group) {
    if (device_of_group_[group] != kNoDevice) continue;
    const OpId first = problem_->group_ops(group).front();
    const std::vector<DeviceId>& found = candidates(first);
    if (found.empty()) {
      stuck_ = true;
    } else {
      decide_with_floating(first, DeviceId{found.front()});
    }
  }
}

Placement ListSchedule::placement() const {
  return expand_groups(*problem_, device_of_group_);
}

Schedule ListSchedule::start_order() const {
  const OpId num_ops = problem_->num_ops();
  std::vector<OpId> order(num_ops);
  std::iota(order.begin(), order.end(), OpId{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](OpId a, OpId b) { return start_[a] < start_[b]; });
  Schedule schedule;
  schedule.priorities.resize(num_ops);
  for (OpId i = 0; i < num_ops; ++i) {
    schedule.priorities[order[i]] = static_cast<std::int64_t>(num_ops - i);
  }
  return schedule;
}

PlaceResult place_by_list(const Problem& problem, Evaluator& evaluator, const Budget& budget,
                          const ListSchedule::Options& options, bool keep_order,
                          const std::function<bool(ListSchedule&)>& fill) {
  const auto complete = [&](ListSchedule& schedule) {
    if (!fill(schedule) || schedule.stuck()) return false;
    schedule.place_rest();
    return !schedule.stuck();
  };
  const auto order = [&](const ListSchedule& schedule) {
    return keep_order ? schedule.start_order() : Schedule{};
  };
  std::vector<DeviceId> all(problem.num_devices());
  std::iota(all.begin(), all.end(), DeviceId{0});
  return fit_memory(problem, evaluator, budget, [&](MemoryLedger& ledger) -> PlaceResult {
    MemoryLedger first_ledger = ledger;
    ListSchedule schedule(problem, first_ledger, all, options);
    if (complete(schedule)) return {schedule.placement(), order(schedule), {}};
    const std::vector<DeviceId> linked = mutually_linked_devices(problem);
    ListSchedule again(problem, ledger, linked, options);
    EMPLACE_CHECK(complete(again));
    return {again.placement(), order(again), {unlinked_note(problem, linked)}};
  });
}

}  // namespace emplace
