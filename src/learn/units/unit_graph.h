// What a policy decides about: units, each one or several colocation groups that go to one device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"

namespace emplace::learn {

using UnitId = std::uint32_t;

// Units are numbered in the order of their first op, so roughly in topological order; merged ops
// may leave cycles between units. Keeps a reference to the problem.
class UnitGraph {
 public:
  // `label_of_group`: groups with the same label are one unit, unless no device may run them all:
  // then they are split into as few units as the order of the groups gives.
  UnitGraph(const Problem& problem, const std::vector<std::uint32_t>& label_of_group);

  const Problem& problem() const { return *problem_; }
  UnitId size() const { return static_cast<UnitId>(groups_.size()); }
  DeviceId num_devices() const { return problem_->num_devices(); }

  std::span<const GroupId> groups(UnitId unit) const { return groups_[unit]; }
  UnitId unit_of_group(GroupId group) const { return unit_of_group_[group]; }
  UnitId unit_of_op(OpId op) const { return unit_of_group_[problem_->group_of(op)]; }

  // Units that this one reads from, and those that read from it: distinct, ascending, not itself.
  // Control dependencies count too. Beside each, the bytes handed over.
  std::span<const UnitId> predecessors(UnitId unit) const { return predecessors_[unit]; }
  std::span<const UnitId> successors(UnitId unit) const { return successors_[unit]; }
  std::span<const Bytes> predecessor_bytes(UnitId unit) const { return predecessor_bytes_[unit]; }
  std::span<const Bytes> successor_bytes(UnitId unit) const { return successor_bytes_[unit]; }
  const Csr<UnitId>& all_predecessors() const { return predecessors_; }
  const Csr<UnitId>& all_successors() const { return successors_; }

  // Never empty.
  std::span<const DeviceId> allowed_devices(UnitId unit) const { return allowed_[unit]; }
  bool allowed(UnitId unit, DeviceId device) const {
    return allowed_mask_[static_cast<std::size_t>(unit) * num_devices() + device] != 0;
  }
  // [unit * num_devices + device]
  std::span<const std::uint8_t> allowed_mask() const { return allowed_mask_; }

  // The sum over its ops: mean time, and bytes that other units read (each tensor once).
  Nanoseconds mean_duration(UnitId unit) const { return mean_duration_[unit]; }
  Bytes output_bytes(UnitId unit) const { return output_bytes_[unit]; }

  // A device for every unit, and back: each unit is where most of its time is.
  Placement expand(std::span<const DeviceId> device_of_unit) const;
  std::vector<DeviceId> contract(const Placement& placement) const;

 private:
  void number_units(const std::vector<std::uint32_t>& label_of_group);
  void connect();

  const Problem* problem_;
  std::vector<UnitId> unit_of_group_;
  Csr<GroupId> groups_;
  Csr<UnitId> predecessors_;
  Csr<UnitId> successors_;
  Csr<Bytes> predecessor_bytes_;
  Csr<Bytes> successor_bytes_;
  Csr<DeviceId> allowed_;
  std::vector<std::uint8_t> allowed_mask_;
  std::vector<Nanoseconds> mean_duration_;
  std::vector<Bytes> output_bytes_;
};

// Those that are in both; lists are sorted.
std::vector<DeviceId> common_devices(std::span<const DeviceId> a, std::span<const DeviceId> b);

}  // namespace emplace::learn
