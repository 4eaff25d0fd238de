// What plans are compared with.
//
// Rules of others, as their papers give them, so that figures can be compared; none searches for
// the least time. Ops that a rule leaves open are divided in the best way for the tensors that it
// decided. At most one look at every way of every op for each way of a tensor.
#include <algorithm>
#include <numeric>
#include <optional>

#include "tensor/methods/methods.h"
#include "selection/solve.h"

namespace emplace {
namespace {

// Ways that cut one dimension (or variable) on all levels; the uncut one where there is no such.
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

struct SingleWays : Ways {
  SingleWays(PartitionProblem& problem, const Classes& classes, bool with_uncut) {
    for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
      this->tensors.push_back(single_ways(problem.ways_of_tensor(tensor, true), with_uncut));
    }
    for (ClassId op = 0; op < classes.num_ops; ++op) {
      this->ops.push_back(single_ways(problem.ways_of_op(op, true), with_uncut));
    }
  }
};

Plan with_best_ops(const PartitionRequest& request, PartitionProblem& problem,
                   std::string_view method, const std::vector<Cuts>& tensors,
                   const std::vector<std::vector<Cuts>>& ways) {
  return expand(request.input, request.workers, std::string(method), tensors,
                best_ops(problem, request.input, tensors, ways));
}

}  // namespace

Plan all_row(const PartitionRequest& request) {
  Traffic traffic(request.workers);
  PartitionProblem problem(request.input, traffic);
  const SingleWays ways(problem, request.input.classes, false);
  std::vector<Cuts> tensors;
  for (const auto& options : ways.tensors) tensors.push_back(options.front());
  return with_best_ops(request, problem, "all-row", tensors, ways.ops);
}

Plan equal_chop(const PartitionRequest& request) {
  Traffic traffic(request.workers);
  PartitionProblem problem(request.input, traffic);
  const SingleWays ways(problem, request.input.classes, false);
  const SelectionResult result = select_strategies(
      problem.build(ways), {.seconds = request.seconds, .cancelled = request.cancelled});
  std::vector<Cuts> tensors;
  for (ClassId tensor = 0; tensor < request.input.classes.num_tensors; ++tensor) {
    tensors.push_back(ways.tensors[tensor][static_cast<std::size_t>(result.strategies[tensor])]);
  }
  return with_best_ops(request, problem, "equal-chop", tensors, ways.ops);
}

namespace {

// The least that the op moves, as far as its tensors are decided.
std::int64_t least_cost(PartitionProblem& problem, const PartitionInput& input, ClassId op,
                        const std::vector<Cuts>& ways,
                        const std::vector<std::optional<Cuts>>& tensors) {
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

}  // namespace

Plan spartan(const PartitionRequest& request) {
  const PartitionInput& input = request.input;
  Traffic traffic(request.workers);
  PartitionProblem problem(input, traffic);
  const SingleWays ways(problem, input.classes, false);
  std::vector<ClassId> order(input.classes.num_tensors);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](ClassId a, ClassId b) {
    const auto size = [&](ClassId of) {
      return input.graph.bytes(input.tensor_of_class[of]) * input.tensors_in_class[of];
    };
    return size(a) > size(b);
  });
  const auto users = users_of(input);
  std::vector<std::optional<Cuts>> tensors(input.classes.num_tensors);
  for (const ClassId tensor : order) {
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
  return with_best_ops(request, problem, "spartan", decided, ways.ops);
}

namespace {

// How an output lies as the op leaves it; whole where the op leaves partial results.
Cuts kept_as_made(const tdl::Description* description, std::size_t output, const Cuts& op_cuts) {
  Cuts cuts(op_cuts.size(), kUncut);
  if (description == nullptr) return cuts;
  const auto& indices = description->writes[output].indices;
  for (std::size_t level = 0; level < op_cuts.size(); ++level) {
    for (std::size_t d = 0; d < indices.size() && op_cuts[level] != kUncut; ++d) {
      if (indices[d].uses(static_cast<tdl::VariableId>(op_cuts[level]))) {
        cuts[level] = static_cast<std::int8_t>(d);
      }
    }
  }
  return cuts;
}

bool is_cut(const Cuts& cuts) {
  return std::any_of(cuts.begin(), cuts.end(), [](std::int8_t cut) { return cut != kUncut; });
}

}  // namespace

Plan data_parallel(const PartitionRequest& request) {
  const PartitionInput& input = request.input;
  const Graph& graph = input.graph;
  Traffic traffic(request.workers);
  PartitionProblem problem(input, traffic);
  const SingleWays ways(problem, input.classes, true);
  const Cuts uncut(request.workers.levels(), kUncut);
  std::vector<std::optional<Cuts>> tensors(input.classes.num_tensors);
  std::vector<std::optional<Cuts>> ops(input.classes.num_ops);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!graph.is_source(op) || graph.role(op) == OpRole::kInput) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      tensors[input.classes.of_tensor[tensor]] = uncut;
    }
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const ClassId of = input.classes.of_op[op];
    const auto outputs = graph.outputs(op);
    if (graph.role(op) == OpRole::kInput) {
      for (const TensorId tensor : outputs) {
        auto& kept = tensors[input.classes.of_tensor[tensor]];
        const Cuts rows(request.workers.levels(), 0);
        const auto& options = ways.tensors[input.classes.of_tensor[tensor]];
        const bool possible = std::find(options.begin(), options.end(), rows) != options.end();
        if (!kept) kept = possible ? rows : uncut;
      }
    }
    if (graph.is_source(op)) continue;
    // The op follows its data: it is divided as what it reads is, if anything of that is divided.
    const auto inputs = graph.inputs(op);
    const bool divided = std::any_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
      const auto& kept = tensors[input.classes.of_tensor[tensor]];
      return kept && is_cut(*kept);
    });
    if (!divided) continue;  // what it makes is as others of its class want it
    Cuts chosen = uncut;
    std::int64_t least = kForbidden;
    for (const Cuts& cuts : ways.ops[of]) {
      if (!is_cut(cuts) && ways.ops[of].size() > 1) continue;
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto& kept = tensors[input.classes.of_tensor[inputs[i]]];
        sum = add_costs(sum, problem.access_cost({of, false, i}, cuts, kept.value_or(uncut)));
      }
      if (sum < least) {
        least = sum;
        chosen = cuts;
      }
    }
    if (!ops[of]) ops[of] = chosen;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      auto& kept = tensors[input.classes.of_tensor[outputs[i]]];
      if (!kept) kept = kept_as_made(input.descriptions[op], i, *ops[of]);
    }
  }
  std::vector<Cuts> decided;
  for (const auto& cuts : tensors) decided.push_back(cuts.value_or(uncut));
  // Ops that read nothing that is divided are done as what they make is kept.
  std::vector<Cuts> chosen = best_ops(problem, input, decided, ways.ops);
  for (ClassId op = 0; op < input.classes.num_ops; ++op) {
    if (ops[op] && problem.op_cost(op, *ops[op], decided) < kForbidden) chosen[op] = *ops[op];
  }
  return expand(input, request.workers, "data-parallel", decided, chosen);
}

}  // namespace emplace
