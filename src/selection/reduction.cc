#include "selection/reduction.h"

#include "selection/binding_times.h"
#include "selection/reduction_rules.h"

namespace emplace {
namespace {

constexpr int kRounds = 20;

void reduce(ReductionGraph& graph, const ReductionOptions& options) {
  const Stop stop = [&] { return options.stop && options.stop(); };
  const auto done = [&] { return graph.infeasible() || stop(); };
  std::int64_t work = options.work;
  for (int round = 0; round < kRounds && !done(); ++round) {
    bool changed = false;
    for (bool more = true; more && !done();) {
      more = prune_and_fold(graph, stop);
      if (!done()) more |= prune_by_usage(graph);
      changed |= more;
    }
    if (options.contraction && !done()) changed |= contract_determined(graph, stop);
    if (options.peeling && !done()) changed |= peel(graph, stop);
    if (options.dominance && !done()) {
      changed |= remove_dominated(graph, graph.take_stale_nodes(), work, stop);
    }
    if (!changed) break;
  }
}

}  // namespace

Reduction::Reduction(const SelectionProblem& problem, const ReductionOptions& options)
    : graph_(problem) {
  if (!graph_.infeasible()) reduce(graph_, options);
  reduced_ = graph_.compact(numbers_);
  if (!reduced_.infeasible) keep_binding_times(reduced_);
}

std::vector<std::int32_t> Reduction::restore(std::span<const std::int32_t> choice) const {
  std::vector<std::int32_t> strategies(graph_.num_nodes(), 0);
  for (std::size_t i = 0; i < numbers_.size(); ++i) strategies[numbers_[i]] = choice[i];
  graph_.undo(strategies);
  return strategies;
}

std::vector<std::int32_t> Reduction::project(std::span<const std::int32_t> strategies) const {
  std::vector<std::int32_t> all(strategies.begin(), strategies.end());
  graph_.redo(all);
  std::vector<std::int32_t> choice;
  for (const std::int32_t number : numbers_) choice.push_back(all[number]);
  return choice;
}

}  // namespace emplace
