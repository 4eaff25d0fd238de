// The best devices for a few units of a placement while everything else stays where it is, by
// branch and bound: depth first over the units, cutting off what is bound to be no better by the
// devices' loads and by the memory that is held for the whole step.
//
// It only says what to try next; the caller evaluates. So it can pause at any time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "sim/incremental.h"
#include "sim/placement.h"
#include "sim/simulator.h"

namespace emplace {

// How long each device works, and what it holds for the whole step.
class DeviceTotals {
 public:
  DeviceTotals(const Problem& problem, const Placement& placement);

  void add(DeviceId device, Nanoseconds load, Bytes resident) {
    load_[device] += load;
    resident_[device] += resident;
  }
  void remove(DeviceId device, Nanoseconds load, Bytes resident) { add(device, -load, -resident); }
  Nanoseconds load(DeviceId device) const { return load_[device]; }
  // No placement that puts at least this on each device has a lower value, under any objective.
  Evaluation bound() const;

 private:
  const Problem& problem_;
  std::vector<Nanoseconds> load_;
  std::vector<Bytes> resident_;
};

class Subproblem {
 public:
  struct Unit {
    std::span<const GroupId> groups;  // must live as long as the subproblem
    std::vector<DeviceId> devices;    // to try: each moves at least one group
  };

  // A unit stays as it is or goes to one device as a whole, less groups that may not go there.
  Subproblem(const Problem& problem, const Placement& placement, std::vector<Unit> units);

  // Goes on to the next assignment that may be better than the cutoff. False at the end: then no
  // assignment that was not tried is.
  bool next(const Evaluation& cutoff);
  // What the assignment moves.
  void moves(std::vector<Move>& moves) const;

 private:
  struct Part {
    DeviceId device;
    Nanoseconds load;
    Bytes resident;
  };

  // What the groups put where when they go to the device; kNoDevice: when they stay.
  std::vector<Part> parts_of(std::span<const GroupId> groups, DeviceId device) const;
  std::size_t num_choices(std::size_t unit) const { return parts_[unit].size(); }
  void put(std::size_t unit);
  void take(std::size_t unit);

  const Problem& problem_;
  const Placement& placement_;
  std::vector<Unit> units_;
  std::vector<std::vector<std::vector<Part>>> parts_;  // [unit][choice]; the first is to stay
  DeviceTotals totals_;                                // of what is decided
  std::vector<std::size_t> choice_;                    // of the first depth_ units
  std::size_t depth_ = 0;
  bool descend_ = true;
};

}  // namespace emplace
