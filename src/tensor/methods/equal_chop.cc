// Every tensor by one dimension, the same on all levels, chosen by dynamic programming.
#include "tensor/budgets.h"
#include "tensor/method.h"
#include "tensor/methods/common/single_dimension.h"

#include "selection/solve.h"

namespace emplace {
namespace {

class EqualChop final : public PartitionMethod {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit EqualChop(const Options&) {}

  Plan find(PartitionContext& context, const Budget& given, Rng rng) override {
    const Budget budget = given.or_default(kPartitionSeconds);
    Traffic traffic(context.workers());
    PartitionProblem problem(context.input(), traffic, Reductions::kPerOp, context.limit());
    const Ways ways = single_dimension_ways(problem, context.input().classes, false);
    const SelectionResult result =
        select_strategies(problem.build(ways), selection_budget(budget, seconds_left(budget)), rng);
    std::vector<Cuts> tensors;
    for (std::size_t tensor = 0; tensor < ways.tensors.size(); ++tensor) {
      tensors.push_back(ways.tensors[tensor][static_cast<std::size_t>(result.strategies[tensor])]);
    }
    return with_best_ops(context, problem, "equal-chop", tensors, ways.ops);
  }
};

}  // namespace

EMPLACE_PARTITION_METHOD(equal_chop, EqualChop, .family = "baseline",
                         .summary = "Every tensor by one dimension, chosen by dynamic programming.",
                         .reference = "Wang et al., EuroSys 2019 (EqualChop)")
}  // namespace emplace
