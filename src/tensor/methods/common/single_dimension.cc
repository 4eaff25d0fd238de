#include "tensor/methods/common/single_dimension.h"

#include <utility>

namespace emplace {

Ways single_dimension_ways(PartitionProblem& problem, const Classes& classes, bool with_uncut,
                           std::size_t first_level) {
  const auto wanted = [&](std::vector<Cuts> ways) {
    if (!with_uncut && ways.size() > 1) ways.pop_back();  // it is the last
    return ways;
  };
  Ways ways;
  for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
    ways.tensors.push_back(wanted(problem.ways_of_tensor_along_one(tensor, first_level)));
  }
  for (ClassId op = 0; op < classes.num_ops; ++op) {
    ways.ops.push_back(wanted(problem.ways_of_op_along_one(op, first_level)));
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
