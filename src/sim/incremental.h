// Exact values of placements that differ from a base placement in a few groups, for searches that
// try one move after another.
//
// The base is simulated in full and recorded. A candidate is simulated only from the first instant
// that its moves concern, and only until it is in step with the base run again, at whatever shift
// in time; then it jumps to the next instant that concerns a moved op, or to the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/units.h"

#include "sim/placement.h"
#include "sim/simulator.h"

namespace emplace {

struct Move {
  GroupId group;
  DeviceId device;
};

// One per thread. Placements, before and after moves, must be valid (check_placement).
class IncrementalSimulator {
 public:
  explicit IncrementalSimulator(std::shared_ptr<const Simulator> simulator);
  ~IncrementalSimulator();
  IncrementalSimulator(IncrementalSimulator&&) noexcept;
  IncrementalSimulator& operator=(IncrementalSimulator&&) noexcept;

  // What Simulator::evaluate says of the placement, at about twice its cost: remembers enough to
  // re-evaluate moves. Everything below needs a base.
  Evaluation set_base(const Placement& placement, const ReadyOrder& order);

  const Placement& placement() const;  // the base
  const Evaluation& base() const;
  // When the op runs in the base run, and when it had all its inputs.
  OpSpan span(OpId op) const;
  Nanoseconds ready_time(OpId op) const;

  // What Simulator::evaluate says of the base with these moves made; of several moves of one group
  // the last counts. With a cutoff it stops as soon as the result cannot be less than the cutoff,
  // and returns something that is not less either. Without overflow in it a cutoff is of time
  // alone: the result of a step below it is exact, whatever overflows.
  Evaluation evaluate(std::span<const Move> moves, const std::optional<Evaluation>& cutoff = {});
  Evaluation evaluate(const Move& move, const std::optional<Evaluation>& cutoff = {}) {
    return evaluate(std::span(&move, 1), cutoff);
  }

  // Makes the moves in the base and records it anew, as set_base does.
  Evaluation accept(std::span<const Move> moves);

  // How many ops all calls of `evaluate` together have simulated; the rest was reused.
  std::int64_t simulated_ops() const;

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace emplace
