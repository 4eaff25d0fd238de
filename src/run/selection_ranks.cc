#include "run/selection_ranks.h"

#include <atomic>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/fingerprint.h"

namespace emplace {
namespace {

std::string bytes_of_selection(const SelectionResult& result) {
  return dist::Writer()
      .numbers(result.strategies)
      .number(result.lower_bound)
      .flag(result.proven)
      .number(result.first_feasible_seconds)
      .number(result.evaluations)
      .take();
}

// What can be computed from the strategies is not taken on trust.
SelectionResult take_selection(dist::Reader& reader, const SelectionProblem& problem) {
  SelectionResult result;
  result.strategies = reader.numbers<std::int32_t>();
  result.lower_bound = reader.number<std::int64_t>();
  result.proven = reader.flag();
  result.first_feasible_seconds = reader.number<double>();
  result.evaluations = reader.number<std::int64_t>();
  reader.end();
  const auto nodes = static_cast<std::size_t>(problem.num_nodes());
  if (result.strategies.size() != nodes) {
    fail_input("it has strategies for {} nodes; expected {}", result.strategies.size(), nodes);
  }
  for (std::int32_t node = 0; node < problem.num_nodes(); ++node) {
    const std::int32_t strategy = result.strategies[static_cast<std::size_t>(node)];
    if (strategy < 0 || strategy >= problem.num_strategies(node)) {
      fail_input("it has strategy {} for a node that has {}", strategy,
                 problem.num_strategies(node));
    }
  }
  const SelectionValue value = evaluate(problem, result.strategies);
  result.cost = value.cost;
  result.feasible = value.feasible;
  if (result.feasible && result.lower_bound > result.cost) {
    fail_input("its bound, {}, is above the cost of its strategies, {}", result.lower_bound,
               result.cost);
  }
  return result;
}

bool beats(const SelectionResult& a, const SelectionResult& b) {
  return a.feasible != b.feasible ? a.feasible : a.cost < b.cost;
}

void merge_selection(std::optional<SelectionResult>& into, SelectionResult result) {
  if (!into) {
    into = std::move(result);
    return;
  }
  const std::int64_t bound = std::max(into->lower_bound, result.lower_bound);
  const std::int64_t evaluations = into->evaluations + result.evaluations;
  const bool proven_infeasible =
      (into->proven && !into->feasible) || (result.proven && !result.feasible);
  if (beats(result, *into)) into = std::move(result);
  into->lower_bound = into->feasible ? std::min(bound, into->cost) : bound;
  into->proven = into->feasible ? into->lower_bound >= into->cost : proven_infeasible;
  into->evaluations = evaluations;
}

// The first rank's are those of one process.
Rng rng_of(std::uint64_t seed, std::size_t rank) {
  return rank == 0 ? Rng(seed) : Rng(seed).split(rank);
}

}  // namespace

std::uint64_t fingerprint(const SelectionProblem& problem, std::uint64_t seed) {
  Fingerprint all;
  const auto add = [&](std::int64_t number) { all.add(static_cast<std::uint64_t>(number)); };
  add(problem.usage_limit().value_or(-1));
  add(problem.num_nodes());
  for (std::int32_t node = 0; node < problem.num_nodes(); ++node) {
    add(problem.num_strategies(node));
    for (const std::int64_t cost : problem.costs(node)) add(cost);
    for (const std::int64_t use : problem.usages(node)) add(use);
    add(problem.interval(node).begin);
    add(problem.interval(node).end);
  }
  for (std::int32_t edge = 0; edge < problem.num_edges(); ++edge) {
    add(problem.edge(edge).a);
    add(problem.edge(edge).b);
    for (const std::int64_t cost : problem.table(edge)) add(cost);
  }
  return all.add(seed).value();
}

SelectionResult select_on_ranks(const SelectionProblem& problem, const Budget& budget,
                                std::uint64_t seed, const SelectionOptions& options,
                                dist::Crew& crew) {
  crew.expect(fingerprint(problem, seed));
  std::optional<SelectionResult> best;
  std::atomic<bool> enough{false};
  Budget own = budget;
  own.cancelled = &enough;
  dist::Job job;
  job.one_each = true;
  job.tasks = static_cast<std::size_t>(crew.size());
  job.describe = [&](std::size_t rank) {
    const double left = budget.seconds.value_or(0) - budget.elapsed_seconds();
    return dist::Writer().number<std::uint64_t>(rank).number(std::max(0.0, left)).take();
  };
  job.here = [&](std::size_t) {
    return bytes_of_selection(select_strategies(problem, own, rng_of(seed, 0), options));
  };
  job.accept = [&](std::size_t, dist::Reader& reader) {
    merge_selection(best, take_selection(reader, problem));
    if (best->proven) enough = true;
  };
  std::optional<Error> failure;
  job.failed = [&](std::size_t rank, const Error& error) {
    if (rank == 0) failure = error;
  };
  job.on_tick = [&] {
    if (budget.cancelled != nullptr && budget.cancelled->load()) enough = true;
  };
  job.cancelled = &enough;
  crew.run(job);
  if (failure) throw *failure;
  return std::move(*best);
}

void serve_selection(const SelectionProblem& problem, const Budget& budget, std::uint64_t seed,
                     dist::Member& member) {
  member.serve(fingerprint(problem, seed), [&](dist::Reader& task, dist::Line& line) {
    const auto rank = static_cast<std::size_t>(task.number<std::uint64_t>());
    const auto seconds = task.number<double>();
    task.end();
    Budget own = budget.restarted();
    own.seconds = seconds;
    own.cancelled = &line.stopped();
    return bytes_of_selection(select_strategies(problem, own, rng_of(seed, rank)));
  });
}

}  // namespace emplace
