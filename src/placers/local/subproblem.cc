#include "placers/local/subproblem.h"

#include <algorithm>

namespace emplace {

DeviceTotals::DeviceTotals(const Problem& problem, const Placement& placement)
    : problem_(problem), load_(problem.num_devices(), 0), resident_(problem.num_devices(), 0) {
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const DeviceId device = placement[op];
    add(device, problem.duration(op, device), problem.resident_bytes(op));
  }
}

// A device runs one op at a time, in a stream too.
Evaluation DeviceTotals::bound() const {
  Evaluation bound;
  for (DeviceId device = 0; device < problem_.num_devices(); ++device) {
    bound.step = std::max(bound.step, load_[device]);
    const Bytes capacity = problem_.cluster().device(device).memory;
    bound.overflow += std::max<Bytes>(0, resident_[device] - capacity);
  }
  return bound;
}

Subproblem::Subproblem(const Problem& problem, const Placement& placement, std::vector<Unit> units)
    : problem_(problem),
      placement_(placement),
      units_(std::move(units)),
      parts_(units_.size()),
      totals_(problem, placement),
      choice_(units_.size(), 0) {
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    parts_[unit].push_back(parts_of(units_[unit].groups, kNoDevice));
    for (const DeviceId device : units_[unit].devices) {
      parts_[unit].push_back(parts_of(units_[unit].groups, device));
    }
    take(unit);
  }
}

std::vector<Subproblem::Part> Subproblem::parts_of(std::span<const GroupId> groups,
                                                   DeviceId device) const {
  std::vector<Part> parts;
  for (const GroupId group : groups) {
    const bool goes = device != kNoDevice && problem_.allowed(group, device);
    const DeviceId where = goes ? device : placement_[problem_.group_ops(group).front()];
    if (parts.empty() || parts.back().device != where) parts.push_back({where, 0, 0});
    for (const OpId op : problem_.group_ops(group)) {
      parts.back().load += problem_.duration(op, where);
      parts.back().resident += problem_.resident_bytes(op);
    }
  }
  return parts;
}

void Subproblem::put(std::size_t unit) {
  for (const Part& part : parts_[unit][choice_[unit]]) {
    totals_.add(part.device, part.load, part.resident);
  }
}

void Subproblem::take(std::size_t unit) {
  for (const Part& part : parts_[unit][choice_[unit]]) {
    totals_.remove(part.device, part.load, part.resident);
  }
}

// Down with every unit that stays; up and sideways with those that go. An assignment is tried when
// its last unit that goes is reached, so none is tried twice.
bool Subproblem::next(const Evaluation& cutoff) {
  while (true) {
    if (descend_ && depth_ < units_.size()) {
      choice_[depth_] = 0;
      put(depth_++);
      descend_ = totals_.bound() < cutoff;
      continue;
    }
    descend_ = false;
    if (depth_ == 0) return false;
    const std::size_t unit = depth_ - 1;
    take(unit);
    if (++choice_[unit] == num_choices(unit)) {
      --depth_;
      continue;
    }
    put(unit);
    if (!(totals_.bound() < cutoff)) continue;
    descend_ = true;
    return true;
  }
}

void Subproblem::moves(std::vector<Move>& moves) const {
  moves.clear();
  for (std::size_t unit = 0; unit < depth_; ++unit) {
    if (choice_[unit] == 0) continue;
    const DeviceId device = units_[unit].devices[choice_[unit] - 1];
    for (const GroupId group : units_[unit].groups) {
      const bool there = placement_[problem_.group_ops(group).front()] == device;
      if (!there && problem_.allowed(group, device)) moves.push_back({group, device});
    }
  }
}

}  // namespace emplace
