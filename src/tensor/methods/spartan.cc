// Spartan's greedy order (Huang et al. 2015): one tensor after the other, the largest first, each
// by the dimension that then moves least.
#include <algorithm>
#include <numeric>
#include <optional>

#include "tensor/method.h"
#include "tensor/methods/common/single_dimension.h"

namespace emplace {
namespace {

// By class of tensors; nothing where it is not decided yet.
using Decided = std::vector<std::optional<Cuts>>;

// The least that the op moves, as far as its tensors are decided.
std::int64_t least_cost(PartitionProblem& problem, const PartitionInput& input, ClassId op,
                        const std::vector<Cuts>& ways, const Decided& tensors) {
  const OpId first = input.op_of_class[op];
  const auto inputs = input.graph.inputs(first);
  const auto outputs = input.graph.outputs(first);
  std::int64_t least = kForbidden;
  for (const Cuts& cuts : ways) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto& kept = tensors[input.classes.of_tensor[inputs[i]]];
      if (kept) sum = add_costs(sum, problem.access_cost({op, false, i}, cuts, *kept));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto& kept = tensors[input.classes.of_tensor[outputs[i]]];
      if (kept) sum = add_costs(sum, problem.access_cost({op, true, i}, cuts, *kept));
    }
    least = std::min(least, sum);
  }
  return least >= kForbidden ? kForbidden : least * input.ops_in_class[op];
}

// Op classes that touch each tensor class.
std::vector<std::vector<ClassId>> users_of(const PartitionInput& input) {
  std::vector<std::vector<ClassId>> users(input.classes.num_tensors);
  for (ClassId op = 0; op < input.classes.num_ops; ++op) {
    const OpId first = input.op_of_class[op];
    if (input.graph.is_source(first)) continue;
    const auto add = [&](TensorId tensor) {
      std::vector<ClassId>& list = users[input.classes.of_tensor[tensor]];
      if (list.empty() || list.back() != op) list.push_back(op);
    };
    for (const TensorId tensor : input.graph.inputs(first)) add(tensor);
    for (const TensorId tensor : input.graph.outputs(first)) add(tensor);
  }
  return users;
}

std::vector<ClassId> largest_first(const PartitionInput& input) {
  std::vector<ClassId> order(input.classes.num_tensors);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](ClassId a, ClassId b) {
    const auto size = [&](ClassId of) {
      return input.graph.bytes(input.tensor_of_class[of]) * input.tensors_in_class[of];
    };
    return size(a) > size(b);
  });
  return order;
}

class Spartan final : public PartitionMethod {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit Spartan(const Options&) {}

  Plan find(PartitionContext& context, const Budget&, Rng) override {
    const PartitionInput& input = context.input();
    Traffic traffic(context.workers());
    PartitionProblem problem(input, traffic, Reductions::kPerOp, context.limit());
    const Ways ways = single_dimension_ways(problem, input.classes, false);
    const auto users = users_of(input);
    Decided tensors(input.classes.num_tensors);
    for (const ClassId tensor : largest_first(input)) {
      std::int64_t least = kForbidden;
      Cuts best = ways.tensors[tensor].front();
      for (const Cuts& cuts : ways.tensors[tensor]) {
        tensors[tensor] = cuts;
        std::int64_t sum = 0;
        for (const ClassId op : users[tensor]) {
          sum = add_costs(sum, least_cost(problem, input, op, ways.ops[op], tensors));
        }
        if (sum < least) {
          least = sum;
          best = cuts;
        }
      }
      tensors[tensor] = best;
    }
    std::vector<Cuts> decided;
    for (const auto& cuts : tensors) decided.push_back(*cuts);
    return with_best_ops(context, problem, "spartan", decided, ways.ops);
  }
};

}  // namespace

EMPLACE_PARTITION_METHOD(spartan, Spartan, .family = "baseline",
                         .summary = "The largest tensor first, each by what then moves least.",
                         .reference = "Huang et al., USENIX ATC 2015")
}  // namespace emplace
