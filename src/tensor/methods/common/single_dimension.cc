#include "tensor/methods/common/single_dimension.h"

#include <algorithm>
#include <utility>

namespace emplace {
namespace {

std::vector<Cuts> single_ways(const std::vector<Cuts>& ways, bool with_uncut) {
  std::vector<Cuts> result;
  for (const Cuts& cuts : ways) {
    const bool single =
        std::all_of(cuts.begin(), cuts.end(), [&](std::int8_t cut) { return cut == cuts.front(); });
    const bool uncut = cuts.empty() || cuts.front() == kUncut;
    if (single && (with_uncut || !uncut)) result.push_back(cuts);
  }
  if (result.empty()) result.emplace_back(ways.front().size(), kUncut);
  return result;
}

}  // namespace

Ways single_dimension_ways(PartitionProblem& problem, const Classes& classes, bool with_uncut) {
  Ways ways;
  for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
    ways.tensors.push_back(single_ways(problem.ways_of_tensor(tensor, true), with_uncut));
  }
  for (ClassId op = 0; op < classes.num_ops; ++op) {
    ways.ops.push_back(single_ways(problem.ways_of_op(op, true), with_uncut));
  }
  return ways;
}

Plan with_best_ops(const PartitionContext& context, PartitionProblem& problem, std::string method,
                   const std::vector<Cuts>& tensors,
                   const std::vector<std::vector<Cuts>>& op_ways) {
  return expand(context.input(), context.workers(), std::move(method), tensors,
                best_ops(problem, context.input(), tensors, op_ways));
}

}  // namespace emplace
