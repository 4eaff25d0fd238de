// How short a step of any division of a graph among workers can be by what they compute: not
// shorter than the shortest pieces of every op allow.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

#include "tensor/partition_problem.h"
#include "tensor/piece_times.h"
#include "tensor/topology.h"

namespace emplace {

// With weights y of the devices that sum to 1, the busiest of them works at least as long as the
// weighted sum of all loads.
//
// - Every worker has a piece of every op, and an op can be cut in so many ways: the weighted sum of
//   its pieces' times is at least that of the best of them.
// - Where there are too many ways, no time for them, or none is certain (sums of partial results
// are added where they
//   are): every element is computed by somebody, in at least its share of what was measured or,
//   where nothing was, of its FLOPs at the rate that kernels of its family reach on the whole op,
//   and of its outputs at the highest bandwidth.
class WorkBound {
 public:
  // `problem` has the input's ops whole. All three outlive this. `limit`: how long pieces may be
  // looked at.
  WorkBound(const PartitionInput& input, const Problem& problem, const WorkerDevices& on,
            const Budget* limit = nullptr);

  // Weighted sums in ns, not rounded: of what an op takes at least, of all ops, and of an op whose
  // cuts begin with each of `beginnings`, which are kUncut from level `levels` on.
  double of_op(OpId op) const { return least_[op]; }
  double of_all() const;
  std::vector<double> of_ways(OpId op, const std::vector<Cuts>& beginnings, std::size_t levels);

 private:
  const PartitionInput& input_;
  const WorkerDevices& on_;
  PieceTimes pieces_;
  std::vector<std::uint8_t> adds_;          // by op: may_add_partial_results
  std::vector<double> weights_;             // by worker; they sum to 1
  std::vector<std::vector<double>> rates_;  // by op and worker: the whole op's least time
  std::vector<double> least_;               // by op
};

// Both.
Nanoseconds divided_work_bound(const PartitionInput& input, const Problem& problem,
                               const WorkerDevices& on);

// The second alone, for every op.
Nanoseconds divided_rate_bound(const Problem& problem, const WorkerDevices& on);

// Whether the op may add partial results where they are, before they are reduced (tensor/lower.h):
// what it does is then not what its cuts say. By op.
std::vector<std::uint8_t> may_add_partial_results(const PartitionInput& input);

}  // namespace emplace
