// A simulated step, read backwards: what each op waited for longest, and what its device ran before
// it. Whoever walks decides at each op which of the two to follow.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

// Refers to what it is made of. Building it sorts the ops and the transfers; then every step of a
// walk takes logarithmic time for each input of the op.
class ChainWalk {
 public:
  static constexpr std::uint32_t kNoTransfer = 0xffffffff;

  // The last of what an op waited for: an op, or the transfer of a tensor that the op made. Of
  // several that end at one moment the first input counts, and inputs before control dependencies.
  struct Cause {
    Nanoseconds time = 0;                  // at which it was over
    OpId op = kNoOp;                       // none where the op was ready at once
    std::uint32_t transfer = kNoTransfer;  // in Timeline::transfers
  };

  // `timeline` is what the simulator says of the placement.
  ChainWalk(const Problem& problem, const Placement& placement, const Timeline& timeline);

  // Starts with the op that finishes last. `visit(op, cause)` returns the op to go on with, which
  // must be an earlier one; kNoOp ends the walk.
  template <typename Visit>
  void backwards(Visit&& visit) const {
    for (OpId op = last_op(); op != kNoOp;) op = visit(op, latest_cause(op));
  }

  // Of any op.
  Cause latest_cause(OpId op) const;

  // The ops of a device that take time, in the order in which they ran.
  std::span<const OpId> ran_on(DeviceId device) const;
  // The last of these that started before the op did; kNoOp if there is none.
  OpId ran_before(OpId op) const;

 private:
  std::pair<TensorId, DeviceId> destination(std::uint32_t transfer) const {
    return {timeline_.transfers[transfer].tensor, timeline_.transfers[transfer].to};
  }
  std::pair<DeviceId, Nanoseconds> begin_of(OpId op) const {
    return {placement_[op], timeline_.ops[op].start};
  }
  OpId last_op() const;
  std::uint32_t arrival(TensorId tensor, DeviceId device) const;

  const Graph& graph_;
  const Placement& placement_;
  const Timeline& timeline_;
  std::vector<OpId> by_start_;           // ops that take time, by device and start
  std::vector<std::uint32_t> arrivals_;  // transfers, by tensor and destination
};

}  // namespace emplace
