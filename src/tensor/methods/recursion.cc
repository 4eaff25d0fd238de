// Tofu's recursion (Wang et al. 2019, section 5): the workers are divided level by level, and on
// each level every tensor and every operator is cut along one dimension, so that the fewest bytes
// move. The choice on a level is a dynamic program over the coarsened graph; here a
// strategy-selection problem, which the same eliminations solve, and which need not be a chain.
#include "tensor/methods/methods.h"
#include "selection/solve.h"

namespace emplace {
namespace {

struct Prefixes {
  std::vector<Cuts> tensors, ops;
};

// Adds the level's cuts to the prefixes.
void cut_level(const PartitionRequest& request, PartitionProblem& problem,
               const PartitionProblem::NodeCost& op_cost, Prefixes& prefixes) {
  const Classes& classes = request.input.classes;
  Ways ways;
  for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
    ways.tensors.push_back(problem.ways_of_tensor(tensor, false, prefixes.tensors[tensor]));
  }
  for (ClassId op = 0; op < classes.num_ops; ++op) {
    ways.ops.push_back(problem.ways_of_op(op, false, prefixes.ops[op]));
  }
  const SelectionProblem selection = problem.build(ways, op_cost);
  const SelectionResult result = select_strategies(
      selection, {.seconds = request.seconds / static_cast<double>(request.workers.levels()),
                  .cancelled = request.cancelled});
  for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
    prefixes.tensors[tensor] =
        ways.tensors[tensor][static_cast<std::size_t>(result.strategies[tensor])];
  }
  for (ClassId op = 0; op < classes.num_ops; ++op) {
    prefixes.ops[op] =
        ways.ops[op][static_cast<std::size_t>(result.strategies[classes.num_tensors + op])];
  }
}

}  // namespace

Plan tofu(const PartitionRequest& request) {
  Prefixes prefixes{std::vector<Cuts>(request.input.classes.num_tensors),
                    std::vector<Cuts>(request.input.classes.num_ops)};
  for (std::size_t level = 0; level < request.workers.levels(); ++level) {
    const Workers groups = request.workers.first(level + 1);
    Traffic traffic(groups);
    PartitionProblem problem(request.input, traffic);
    cut_level(request, problem, {}, prefixes);
  }
  return expand(request.input, request.workers, "tofu", prefixes.tensors, prefixes.ops);
}

// A group talks through its first worker's links; what is cut later divides what they carry.
Plan recursive_by_time(const PartitionRequest& request) {
  Prefixes prefixes{std::vector<Cuts>(request.input.classes.num_tensors),
                    std::vector<Cuts>(request.input.classes.num_ops)};
  for (std::size_t level = 0; level < request.workers.levels(); ++level) {
    const Workers groups = request.workers.first(level + 1);
    const Worker size = request.workers.count() / groups.count();
    std::vector<DeviceId> devices;
    for (Worker group = 0; group < groups.count(); ++group) {
      devices.push_back(request.devices[group * size]);
    }
    Traffic traffic(groups, request.problem.cluster(), devices);
    PartitionProblem problem(request.input, traffic);
    cut_level(request, problem, {}, prefixes);
  }
  return expand(request.input, request.workers, "recursive", prefixes.tensors, prefixes.ops);
}

}  // namespace emplace
