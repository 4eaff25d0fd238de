// The use of memory while re-evaluating moves jumps along the base run (sim/incremental.h).
//
// Where the candidate is in step with the base, each device uses what it used in the base, and an
// offset: tensors that moved ops make or read lie, or lay, elsewhere. Offsets change only where the
// base or the candidate releases such a tensor, and both instants are known beforehand: its
// transfers have ended before any jump, so a release that is jumped over comes with the last
// finish, in the base run, of its consumers on the device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "sim/incremental_tables.h"
#include "sim/incremental_workspace.h"
#include "sim/placement.h"
#include "sim/program.h"

namespace emplace {

struct MovedGroup {
  GroupId group;
  DeviceId from;
  DeviceId to;
};

class MoveMemory {
 public:
  MoveMemory(const SimProgram& program, const MoveTables& tables, MoveWorkspace& workspace);

  // Before the base run is recorded.
  void set_base(const Placement& placement);

  // Before a candidate is simulated. `nodes` and `tensors`: what the moves touch.
  void begin(std::span<const MovedGroup> groups, std::span<const std::uint32_t> nodes,
             std::span<const std::uint32_t> tensors, const Problem& problem);
  // The candidate is simulated from the beginning of the step.
  void enter_step();
  // The same, once sources have put their tensors there.
  void enter_after_sources();
  // It jumps over the instants after `from` and is simulated from the end of `to` on.
  void enter(std::uint32_t from, std::uint32_t to);
  // It is in step with the base at the end of `matched`.
  void leave(std::uint32_t matched);
  // Counts the peaks of the instants after `from`, until the end of `to`.
  void pass_over(std::uint32_t from, std::uint32_t to);

 private:
  // By how much the offset of a device changes at an instant of the base run.
  struct Change {
    std::uint32_t instant;
    std::uint32_t device;
    Bytes by;
  };
  // When a tensor's memory on one device goes, in the base and in the candidate; 0: it is not
  // there.
  struct Release {
    std::uint32_t in_base = 0;
    std::uint32_t here = 0;
    bool listed = false;  // in release_devices_
  };

  Bytes put(std::uint32_t source) const {
    return p_.memory[source].alloc_at_start - p_.memory[source].free_at_finish;
  }
  void find_changes(std::span<const std::uint32_t> tensors);
  void find_copies(std::uint32_t tensor);
  void find_original(std::uint32_t tensor);
  void note_uses(std::uint32_t tensor, DeviceId home_in_base, DeviceId home);
  void add_releases(Bytes bytes);
  Release& release_on(std::uint32_t device);
  void count(std::uint32_t device, std::uint32_t from, std::uint32_t to);

  const SimProgram& p_;
  const MoveTables& t_;
  MoveWorkspace& w_;
  const Placement* base_ = nullptr;
  std::vector<Bytes> resident_;  // by device, in the base
  std::vector<Bytes> sources_;   // what sources put on each device
  std::vector<Bytes> moved_resident_;
  std::vector<Bytes> offset_;
  std::vector<std::uint32_t> counted_;  // by device: instants from this one on are not counted yet
  std::vector<Change> changes_;         // ascending
  std::vector<Release> releases_;       // by device
  std::vector<std::uint32_t> release_devices_;
  std::vector<std::uint32_t> roots_done_;  // by root: the evaluation
};

}  // namespace emplace
