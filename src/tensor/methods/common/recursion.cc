#include "tensor/methods/common/recursion.h"

#include <utility>
#include <vector>

#include "tensor/budgets.h"

#include "selection/solve.h"

namespace emplace {
namespace {

struct Prefixes {
  std::vector<Cuts> tensors, ops;  // by class
};

// Adds the level's cuts to the prefixes.
void cut_level(const Classes& classes, PartitionProblem& problem, const Budget& budget, Rng rng,
               Prefixes& prefixes) {
  Ways ways;
  for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
    ways.tensors.push_back(problem.ways_of_tensor(tensor, false, prefixes.tensors[tensor]));
  }
  for (ClassId op = 0; op < classes.num_ops; ++op) {
    ways.ops.push_back(problem.ways_of_op(op, false, prefixes.ops[op]));
  }
  const SelectionResult result = select_strategies(problem.build(ways), budget, rng);
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

Plan cut_level_by_level(const PartitionContext& context, std::string method,
                        const std::function<Traffic(const Workers& groups)>& traffic_among,
                        const Budget& budget, Rng rng) {
  const Workers& workers = context.workers();
  const Classes& classes = context.input().classes;
  Prefixes prefixes{std::vector<Cuts>(classes.num_tensors), std::vector<Cuts>(classes.num_ops)};
  for (std::size_t level = 0; level < workers.levels(); ++level) {
    const Workers groups = workers.first(level + 1);
    Traffic traffic = traffic_among(groups);
    PartitionProblem problem(context.input(), traffic, Reductions::kPerOp, context.limit());
    const double seconds = budget.seconds.value_or(0) / static_cast<double>(workers.levels());
    cut_level(classes, problem, selection_budget(budget, seconds), rng, prefixes);
  }
  return expand(context.input(), workers, std::move(method), prefixes.tensors, prefixes.ops);
}

}  // namespace emplace
