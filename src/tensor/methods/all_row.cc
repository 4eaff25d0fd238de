// Every tensor by its first dimension, every op as suits them best.
#include "tensor/method.h"
#include "tensor/methods/common/single_dimension.h"

namespace emplace {
namespace {

class AllRow final : public PartitionMethod {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit AllRow(const Options&) {}

  Plan find(PartitionContext& context, const Budget&, Rng) override {
    Traffic traffic(context.workers());
    PartitionProblem problem(context.input(), traffic, Reductions::kPerOp, context.limit());
    const Ways ways = single_dimension_ways(problem, context.input().classes, false);
    std::vector<Cuts> tensors;
    for (const auto& options : ways.tensors) tensors.push_back(options.front());
    return with_best_ops(context, problem, "all-row", tensors, ways.ops);
  }
};

}  // namespace

EMPLACE_PARTITION_METHOD(all_row, AllRow, .family = "baseline",
                         .summary = "Every tensor by its first dimension.",
                         .reference = "Wang et al., EuroSys 2019 (AllRow-Greedy)")
}  // namespace emplace
