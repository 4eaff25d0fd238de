// An assignment of a level's items to devices, with the loads of all resources and the memory of
// all devices kept up to date under moves. A move costs O(nets of the item), where every link is as
// fast as every other, and O(devices that those nets touch) elsewhere. Equal to sim/throughput.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "stream/largest_temps.h"
#include "stream/level.h"

namespace emplace {

class StreamState {
 public:
  struct Change {
    std::uint32_t resource;
    Nanoseconds load;  // after the move
  };

  // `device_of` must respect the items' sets; it need neither fit nor have all links.
  StreamState(const StreamLevel& level, std::span<const DeviceId> device_of);

  const StreamLevel& level() const { return level_; }
  DeviceId device_of(std::uint32_t item) const { return device_of_[item]; }
  const std::vector<DeviceId>& assignment() const { return device_of_; }
  Nanoseconds load(std::uint32_t resource) const { return loads_[resource]; }
  std::span<const Nanoseconds> loads() const { return loads_; }
  Nanoseconds period() const;
  Bytes need(DeviceId device) const { return used_[device] + temps_.largest(device); }
  Bytes overflow(DeviceId device) const { return over_capacity(need(device), device); }
  Bytes overflow() const { return overflow_; }  // of all devices
  // Transfers for which there is no link. A placement must have none.
  std::int64_t missing_links() const { return missing_links_; }
  // Whether no assignment could overflow any device.
  bool memory_is_ample() const { return memory_is_ample_; }

  // What moving the item to another device would change: loads, then the rest. The span holds
  // until the next probe; each resource occurs once.
  std::span<const Change> probe(std::uint32_t item, DeviceId to) {
    if (dense_) return probe_symmetric(item, to);
    return probe_general(item, to);
  }
  std::int64_t probed_missing_links() const { return probed_missing_; }
  // The devices' overflows after such a move.
  Bytes overflow_with(std::uint32_t item, DeviceId to) const {
    const Bytes temp = std::max(temps_.largest(to), level_.temp(item));
    return over_capacity(used_[to] + level_.memory(item) + temp, to);
  }
  Bytes overflow_without(std::uint32_t item) const {
    const DeviceId from = device_of_[item];
    const Bytes temp = temps_.largest_without(item, from);
    return over_capacity(used_[from] - level_.memory(item) + temp, from);
  }

  // Makes the move that was probed last.
  void move(std::uint32_t item, DeviceId to);

  // The same for two items on different devices that change places.
  std::span<const Change> probe_swap(std::uint32_t a, std::uint32_t b) {
    if (dense_) return probe_swap_symmetric(a, b);
    return probe_swap_general(a, b);
  }
  // The overflow of the device of `leaving` when `joining` takes its place.
  Bytes overflow_swapped(std::uint32_t leaving, std::uint32_t joining) const {
    const DeviceId device = device_of_[leaving];
    const Bytes temp = std::max(temps_.largest_without(leaving, device), level_.temp(joining));
    const Bytes more = level_.memory(joining) - level_.memory(leaving);
    return over_capacity(used_[device] + more + temp, device);
  }
  void swap(std::uint32_t a, std::uint32_t b);

 private:
  struct Slot {
    std::uint32_t device;
    std::uint32_t pins;
  };

  Bytes over_capacity(Bytes need, DeviceId device) const {
    const Bytes capacity = level_.devices().capacity[device];
    return need > capacity ? need - capacity : 0;
  }
  std::span<const Change> probe_symmetric(std::uint32_t item, DeviceId to);
  std::span<const Change> probe_general(std::uint32_t item, DeviceId to);
  std::span<const Change> probe_swap_symmetric(std::uint32_t a, std::uint32_t b);
  std::span<const Change> probe_swap_general(std::uint32_t a, std::uint32_t b);
  void mark_nets(std::uint32_t item);
  bool take_mark(std::uint32_t net) {
    if (marked_[net] != num_marks_) return false;
    marked_[net] = 0;
    return true;
  }
  void begin_changes();
  // Changes what the net costs as its pin `item` moves.
  void recharge(std::uint32_t net, std::uint32_t item, DeviceId to);
  void count_pins();
  void sum_memory();
  void add_load(std::uint32_t resource, Nanoseconds change);
  // Adds what the net costs, `sign` times, when sent from `from` to targets_.
  void charge(std::uint32_t net, DeviceId from, int sign);
  void charge_multicast(std::uint32_t net, DeviceId from, int sign);
  void charge_device(DeviceId device, Nanoseconds length, int sign) {
    if (level_.devices().pays[device] != 0) add_load(device, sign * length);
  }
  void set_targets(std::uint32_t net, DeviceId source);
  void move_pin(std::uint32_t net, DeviceId from, DeviceId to);

  const StreamLevel& level_;
  bool dense_ = false;
  bool memory_is_ample_ = true;
  std::vector<DeviceId> device_of_;
  std::vector<Nanoseconds> loads_;
  std::vector<Bytes> used_;  // by device, without temps
  LargestTemps temps_;
  Bytes overflow_ = 0;
  std::int64_t missing_links_ = 0;

  // Where a cut net costs all alike: [net][1 + device] the pins there, after the number of pins.
  std::vector<std::uint32_t> counts_;
  std::size_t stride_ = 0;
  std::vector<Nanoseconds> lengths_;  // by net

  // Elsewhere: a net's devices in slots_[first_slot_[net]...], num_slots_[net] of them.
  std::vector<Slot> slots_;
  std::vector<std::size_t> first_slot_;
  std::vector<std::uint32_t> num_slots_;

  std::vector<std::uint64_t> marked_;  // by net, the last mark_nets that marked it
  std::uint64_t num_marks_ = 0;

  std::vector<Change> changes_;
  std::vector<std::uint32_t> change_at_;  // by resource, the place in changes_ plus 1
  std::int64_t probed_missing_ = 0;
  std::vector<DeviceId> targets_;
  std::vector<Nanoseconds> longest_on_;  // by channel; scratch of charge_multicast
};

}  // namespace emplace
