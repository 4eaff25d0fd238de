#include "run/plan_copies.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "tensor/captured_operators.h"
#include "tensor/work_bound.h"

namespace emplace {
namespace {

// Updates are left out, which weights that are everywhere need everywhere, and sums of partial
// results, of which everybody has others.
std::vector<std::uint8_t> ops_that_count(const PartitionInput& input) {
  std::vector<std::uint8_t> count = may_add_partial_results(input);
  for (OpId op = 0; op < input.graph.num_ops(); ++op) {
    count[op] = count[op] == 0 && input.graph.phase(op) != Phase::kUpdate ? 1 : 0;
  }
  return count;
}

bool has_examples_for_all(const PartitionInput& input, const Workers& workers) {
  const Graph& graph = input.graph;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.role(op) != OpRole::kInput) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      const auto shape = graph.shape(tensor);
      if (!shape.empty() && shape[0] >= static_cast<std::int64_t>(workers.count())) return true;
    }
  }
  return false;
}

void add_once(std::vector<std::string>& types, std::string_view type) {
  if (std::find(types.begin(), types.end(), type) == types.end()) types.emplace_back(type);
}

}  // namespace

UndividedTypes undivided_types(const PartitionInput& input) {
  const Graph& graph = input.graph;
  UndividedTypes types;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op) || input.descriptions[op] != nullptr) continue;
    const bool silent = is_captured_operator(graph.type(op)) && graph.attributes(op).empty();
    add_once(silent ? types.unattributed : types.undescribed, graph.type(op));
  }
  return types;
}

double mean_copies(const PartitionInput& input, const Problem& problem, const Plan& plan,
                   DeviceId device) {
  const std::vector<std::uint8_t> counts = ops_that_count(input);
  double all = 0;
  double once = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (counts[op] == 0) continue;
    auto time = static_cast<double>(problem.duration(op, device));
    once += time;
    for (std::size_t level = 0; level < plan.workers.levels(); ++level) {
      if (plan.ops[op][level] == kUncut) time *= plan.workers.factor(level);
    }
    all += time;
  }
  return once > 0 ? all / once : 1;
}

std::size_t repeating_levels(const PartitionInput& input, const Plan& plan, std::size_t levels) {
  if (levels == 0 || !has_examples_for_all(input, plan.workers)) return 0;
  const std::vector<std::uint8_t> counts = ops_that_count(input);
  const auto repeats = [&](std::size_t level) {
    for (OpId op = 0; op < input.graph.num_ops(); ++op) {
      if (counts[op] != 0 && !input.graph.is_source(op) && plan.ops[op][level] != kUncut) {
        return false;
      }
    }
    return true;
  };
  std::size_t repeating = 0;
  while (repeating < levels && repeats(repeating)) ++repeating;
  return repeating;
}

Plan plan_of_one_group(const Plan& plan, std::size_t levels, const Workers& workers) {
  Plan one = plan;
  one.workers = workers;
  for (auto* cuts_of : {&one.tensors, &one.ops}) {
    for (Cuts& cuts : *cuts_of) {
      cuts.erase(cuts.begin(), cuts.begin() + static_cast<std::ptrdiff_t>(levels));
    }
  }
  one.added_cost.reset();
  return one;
}

}  // namespace emplace
