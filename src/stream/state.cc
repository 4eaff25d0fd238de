// Invariant: loads, memory and missing links are those of the present assignment, as
// sim/throughput.h adds them up. A probe computes what would change and leaves the rest as it is;
// `move` and `swap` take over what was probed.
//
// Two ways to count, both exact. Where every device that a cut net touches pays the same
// (`symmetric`), it matters only how many pins of a net each device has, none, some or all: a pin
// that leaves or joins changes two devices' loads, and a net is O(1). Elsewhere a net is charged by
// who sends it where: the old charge is taken back and the new one made, O(devices of the net),
// unless the item is not its sender and the set of devices stays. Pins by net and device are a
// dense table where that is small, which is faster than lists. Ours, after the pin counts of
// hypergraph partitioners (Fiduccia and Mattheyses, DAC 1982).
#include "stream/state.h"

#include <algorithm>

#include "base/check.h"

namespace emplace {
namespace {

// Counting pins by net and device is fastest, as long as it stays small.
constexpr std::size_t kMaxDenseCounts = std::size_t{1} << 25;

}  // namespace

StreamState::StreamState(const StreamLevel& level, std::span<const DeviceId> device_of)
    : level_(level), device_of_(device_of.begin(), device_of.end()) {
  const StreamDevices& devices = level.devices();
  EMPLACE_CHECK(device_of_.size() == level.num_items());
  dense_ =
      devices.symmetric && level.num_nets() * (devices.count + std::size_t{1}) <= kMaxDenseCounts;
  loads_.assign(devices.num_resources, 0);
  change_at_.assign(devices.num_resources, 0);
  longest_on_.assign(devices.multicast ? devices.num_channels : 0, 0);
  for (std::uint32_t item = 0; item < level.num_items(); ++item) {
    loads_[device_of_[item]] += level.time(item, device_of_[item]);
  }
  sum_memory();
  count_pins();
}

void StreamState::sum_memory() {
  const StreamDevices& devices = level_.devices();
  used_.assign(devices.count, 0);
  Bytes total = 0;
  Bytes largest_temp = 0;
  for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
    total += level_.memory(item);
    largest_temp = std::max(largest_temp, level_.temp(item));
    used_[device_of_[item]] += level_.memory(item);
  }
  for (DeviceId device = 0; device < devices.count; ++device) {
    if (over_capacity(total + largest_temp, device) > 0) memory_is_ample_ = false;
  }
  if (memory_is_ample_) return;
  temps_ = LargestTemps(level_, devices.count);
  for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
    temps_.add(item, device_of_[item]);
  }
  for (DeviceId device = 0; device < devices.count; ++device) overflow_ += overflow(device);
}

void StreamState::count_pins() {
  const DeviceId num_devices = level_.devices().count;
  const std::uint32_t num_nets = level_.num_nets();
  marked_.assign(num_nets, 0);
  if (dense_) {
    stride_ = num_devices + std::size_t{1};
    counts_.assign(num_nets * stride_, 0);
    for (std::uint32_t net = 0; net < num_nets; ++net) {
      const auto pins = level_.pins(net);
      std::uint32_t* const counts = &counts_[net * stride_];
      counts[0] = static_cast<std::uint32_t>(pins.size());
      lengths_.push_back(level_.length(net, 0));
      for (const std::uint32_t pin : pins) ++counts[1 + device_of_[pin]];
      for (DeviceId device = 0; device < num_devices; ++device) {
        const std::uint32_t here = counts[1 + device];
        if (here == 0 || here == counts[0] || level_.devices().pays[device] == 0) continue;
        loads_[device] += lengths_[net];
      }
    }
    changes_.resize(2);
    return;
  }
  std::size_t total = 0;
  for (std::uint32_t net = 0; net < num_nets; ++net) {
    first_slot_.push_back(total);
    total += std::min<std::size_t>(level_.pins(net).size(), num_devices);
  }
  slots_.resize(total);
  num_slots_.assign(num_nets, 0);
  for (std::uint32_t net = 0; net < num_nets; ++net) {
    for (const std::uint32_t pin : level_.pins(net)) move_pin(net, kNoDevice, device_of_[pin]);
    const DeviceId source = device_of_[level_.pins(net)[0]];
    set_targets(net, source);
    charge(net, source, 1);
    for (const Change& change : changes_) {
      loads_[change.resource] = change.load;
      change_at_[change.resource] = 0;
    }
    changes_.clear();
  }
  missing_links_ = probed_missing_;
}

Nanoseconds StreamState::period() const {
  return *std::max_element(loads_.begin(), loads_.end());
}

void StreamState::mark_nets(std::uint32_t item) {
  ++num_marks_;
  for (const std::uint32_t net : level_.nets(item)) marked_[net] = num_marks_;
}

namespace {

// By how much a device's cost of a net changes, in lengths of the net, when one of its `here` pins
// there leaves: the first one to go cuts the net, the last one takes it away.
int leave_change(std::uint32_t pins, std::uint32_t here) {
  return static_cast<int>(here == pins) - static_cast<int>(here == 1);
}

// When a pin joins the `here` that are there.
int join_change(std::uint32_t pins, std::uint32_t here) {
  return static_cast<int>(here == 0) - static_cast<int>(here + 1 == pins);
}

}  // namespace

std::span<const StreamState::Change> StreamState::probe_symmetric(std::uint32_t item, DeviceId to) {
  const DeviceId from = device_of_[item];
  Nanoseconds left = 0;
  Nanoseconds joined = 0;
  for (const std::uint32_t net : level_.nets(item)) {
    const std::uint32_t* const counts = &counts_[net * stride_];
    left += lengths_[net] * leave_change(counts[0], counts[1 + from]);
    joined += lengths_[net] * join_change(counts[0], counts[1 + to]);
  }
  const StreamDevices& devices = level_.devices();
  changes_[0] = {from, loads_[from] - level_.time(item, from) + devices.pays[from] * left};
  changes_[1] = {to, loads_[to] + level_.time(item, to) + devices.pays[to] * joined};
  return changes_;
}

std::span<const StreamState::Change> StreamState::probe_swap_symmetric(std::uint32_t a,
                                                                       std::uint32_t b) {
  const DeviceId x = device_of_[a];
  const DeviceId y = device_of_[b];
  Nanoseconds on_x = 0;
  Nanoseconds on_y = 0;
  mark_nets(b);
  for (const std::uint32_t net : level_.nets(a)) {
    if (take_mark(net)) continue;  // of both: as many pins here and there as before
    const std::uint32_t* const counts = &counts_[net * stride_];
    on_x += lengths_[net] * leave_change(counts[0], counts[1 + x]);
    on_y += lengths_[net] * join_change(counts[0], counts[1 + y]);
  }
  for (const std::uint32_t net : level_.nets(b)) {
    if (!take_mark(net)) continue;
    const std::uint32_t* const counts = &counts_[net * stride_];
    on_y += lengths_[net] * leave_change(counts[0], counts[1 + y]);
    on_x += lengths_[net] * join_change(counts[0], counts[1 + x]);
  }
  const StreamDevices& devices = level_.devices();
  changes_[0] = {x, loads_[x] + level_.time(b, x) - level_.time(a, x) + devices.pays[x] * on_x};
  changes_[1] = {y, loads_[y] + level_.time(a, y) - level_.time(b, y) + devices.pays[y] * on_y};
  return changes_;
}

void StreamState::add_load(std::uint32_t resource, Nanoseconds change) {
  std::uint32_t& at = change_at_[resource];
  if (at == 0) {
    changes_.push_back({resource, loads_[resource]});
    at = static_cast<std::uint32_t>(changes_.size());
  }
  changes_[at - 1].load += change;
}

void StreamState::set_targets(std::uint32_t net, DeviceId source) {
  targets_.clear();
  const Slot* const first = &slots_[first_slot_[net]];
  for (const Slot* slot = first; slot != first + num_slots_[net]; ++slot) {
    if (slot->device != source) targets_.push_back(static_cast<DeviceId>(slot->device));
  }
}

void StreamState::charge(std::uint32_t net, DeviceId from, int sign) {
  const StreamDevices& devices = level_.devices();
  if (devices.multicast) return charge_multicast(net, from, sign);
  Nanoseconds longest = 0;
  for (const DeviceId to : targets_) {
    const std::size_t pair = devices.pair(from, to);
    if (devices.link_class[pair] == StreamDevices::kNoLinkClass) {
      probed_missing_ += sign;
      continue;
    }
    const Nanoseconds length = level_.length(net, devices.link_class[pair]);
    longest = std::max(longest, length);
    if (devices.loads_channel[pair] != 0)
      add_load(devices.count + devices.channel[pair], sign * length);
    charge_device(to, length, sign);
  }
  charge_device(from, longest, sign);
}

void StreamState::charge_multicast(std::uint32_t net, DeviceId from, int sign) {
  const StreamDevices& devices = level_.devices();
  Nanoseconds longest = 0;
  for (const DeviceId to : targets_) {
    const std::size_t pair = devices.pair(from, to);
    if (devices.link_class[pair] == StreamDevices::kNoLinkClass) continue;
    const Nanoseconds length = level_.length(net, devices.link_class[pair]);
    longest = std::max(longest, length);
    if (devices.is_multicast[pair] != 0) {
      Nanoseconds& shared = longest_on_[devices.channel[pair]];
      shared = std::max(shared, length);
    }
  }
  for (const DeviceId to : targets_) {
    const std::size_t pair = devices.pair(from, to);
    if (devices.link_class[pair] == StreamDevices::kNoLinkClass) {
      probed_missing_ += sign;
    } else if (devices.is_multicast[pair] != 0) {
      charge_device(to, longest_on_[devices.channel[pair]], sign);
    } else {
      const Nanoseconds length = level_.length(net, devices.link_class[pair]);
      if (devices.loads_channel[pair] != 0)
        add_load(devices.count + devices.channel[pair], sign * length);
      charge_device(to, length, sign);
    }
  }
  for (const DeviceId to : targets_) {
    const std::size_t pair = devices.pair(from, to);
    if (devices.is_multicast[pair] == 0) continue;
    Nanoseconds& shared = longest_on_[devices.channel[pair]];
    if (devices.channels) add_load(devices.count + devices.channel[pair], sign * shared);
    shared = 0;  // and so counted once
  }
  charge_device(from, longest, sign);
}

void StreamState::begin_changes() {
  for (const Change& change : changes_) change_at_[change.resource] = 0;
  changes_.clear();
  probed_missing_ = missing_links_;
}

void StreamState::recharge(std::uint32_t net, std::uint32_t item, DeviceId to) {
  const DeviceId from = device_of_[item];
  std::uint32_t here = 0;
  std::uint32_t there = 0;
  const Slot* const first = &slots_[first_slot_[net]];
  for (const Slot* slot = first; slot != first + num_slots_[net]; ++slot) {
    if (slot->device == from) here = slot->pins;
    if (slot->device == to) there = slot->pins;
  }
  const std::uint32_t source = level_.pins(net)[0];
  if (source != item && here > 1 && there > 0) return;
  const DeviceId sender = device_of_[source];
  set_targets(net, sender);
  charge(net, sender, -1);
  const DeviceId new_sender = source == item ? to : sender;
  set_targets(net, new_sender);
  if (here == 1) std::erase(targets_, from);
  if (there == 0 && source != item) targets_.push_back(to);
  charge(net, new_sender, 1);
}

std::span<const StreamState::Change> StreamState::probe_general(std::uint32_t item, DeviceId to) {
  begin_changes();
  add_load(device_of_[item], -level_.time(item, device_of_[item]));
  add_load(to, level_.time(item, to));
  for (const std::uint32_t net : level_.nets(item)) recharge(net, item, to);
  return changes_;
}

std::span<const StreamState::Change> StreamState::probe_swap_general(std::uint32_t a,
                                                                     std::uint32_t b) {
  begin_changes();
  const DeviceId x = device_of_[a];
  const DeviceId y = device_of_[b];
  add_load(x, level_.time(b, x) - level_.time(a, x));
  add_load(y, level_.time(a, y) - level_.time(b, y));
  mark_nets(b);
  for (const std::uint32_t net : level_.nets(a)) {
    if (!take_mark(net)) {
      recharge(net, a, y);
      continue;
    }
    // A net of both stays on the same devices; at most its sender changes.
    const std::uint32_t source = level_.pins(net)[0];
    if (source != a && source != b) continue;
    set_targets(net, device_of_[source]);
    charge(net, device_of_[source], -1);
    const DeviceId sender = source == a ? y : x;
    set_targets(net, sender);
    charge(net, sender, 1);
  }
  for (const std::uint32_t net : level_.nets(b)) {
    if (take_mark(net)) recharge(net, b, x);
  }
  return changes_;
}

void StreamState::move_pin(std::uint32_t net, DeviceId from, DeviceId to) {
  Slot* const first = &slots_[first_slot_[net]];
  std::uint32_t& count = num_slots_[net];
  if (from != kNoDevice) {
    Slot* const slot =
        std::find_if(first, first + count, [&](const Slot& s) { return s.device == from; });
    if (--slot->pins == 0) *slot = first[--count];
  }
  Slot* const slot =
      std::find_if(first, first + count, [&](const Slot& s) { return s.device == to; });
  if (slot == first + count) {
    *slot = {to, 0};
    ++count;
  }
  ++slot->pins;
}

void StreamState::swap(std::uint32_t a, std::uint32_t b) {
  const DeviceId x = device_of_[a];
  const DeviceId y = device_of_[b];
  move(a, y);
  move(b, x);
}

void StreamState::move(std::uint32_t item, DeviceId to) {
  const DeviceId from = device_of_[item];
  if (!memory_is_ample_) {
    overflow_ -= overflow(from) + overflow(to);
    temps_.remove(item, from);
    temps_.add(item, to);
  }
  used_[from] -= level_.memory(item);
  used_[to] += level_.memory(item);
  if (!memory_is_ample_) overflow_ += overflow(from) + overflow(to);
  for (const Change& change : changes_) loads_[change.resource] = change.load;
  device_of_[item] = to;
  if (dense_) {
    for (const std::uint32_t net : level_.nets(item)) {
      std::uint32_t* const counts = &counts_[net * stride_];
      --counts[1 + from];
      ++counts[1 + to];
    }
    return;
  }
  missing_links_ = probed_missing_;
  for (const std::uint32_t net : level_.nets(item)) move_pin(net, from, to);
}

}  // namespace emplace
