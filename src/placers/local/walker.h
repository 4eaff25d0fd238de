// Where a local search stands, and what lies one step away: exact values of placements that differ
// from a current one by a few moves, under the evaluator's objective.
//
// Latency: sim/incremental.h, or a full simulation where that is cheaper, or where the scheduler
// makes another order for every placement; accepted moves are recorded anew only when it pays.
// Throughput: loads under moves (stream/state.h), or the evaluator's estimate where streams are
// simulated.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "sim/incremental.h"
#include "sim/placement.h"
#include "sim/simulator.h"

#include "placer/evaluator.h"

namespace emplace {

// One per thread.
class Walker {
 public:
  // Counts what it evaluates with the evaluator.
  static std::unique_ptr<Walker> make(Evaluator& evaluator);
  virtual ~Walker() = default;

  // Begins from a valid placement. Everything below needs that.
  virtual Evaluation start(const Placement& placement, const Schedule& schedule) = 0;

  virtual const Placement& placement() const = 0;
  virtual const Evaluation& value() const = 0;

  // The value with these moves made; of several moves of one group the last counts. The moves must
  // leave the placement valid (allowed devices, links). With a cutoff it may stop as soon as the
  // result cannot be less than the cutoff, and returns something that is not less either.
  virtual Evaluation try_moves(std::span<const Move> moves,
                               const std::optional<Evaluation>& cutoff = {}) = 0;
  // The same with the time alone as the limit: may stop as soon as it cannot be below `latest`,
  // however much overflows, and then returns a time that is not.
  virtual Evaluation try_before(std::span<const Move> moves, Nanoseconds latest) = 0;
  // Makes the moves. `value` is what a try said of them, from the same place, as it was within its
  // limit or had none.
  virtual void accept(std::span<const Move> moves, const Evaluation& value) = 0;
};

}  // namespace emplace
