#include "selection/solve.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "base/check.h"

#include "selection/branch.h"
#include "selection/cost_tables.h"
#include "selection/elimination.h"
#include "selection/incumbent.h"
#include "selection/reduction.h"
#include "selection/search.h"

namespace emplace {
namespace {

// What whole graphs are eliminated within.
constexpr EliminationOrder::Limits kExactLimits{.table = 1 << 24, .work = 3e8};
// What is searched for all choices.
constexpr std::int32_t kBranchNodes = 50;
constexpr std::int64_t kBranchSteps = 300'000;
// Of the time, for reductions.
constexpr double kReductionShare = 0.5;
// Sums up to this are exact in doubles.
constexpr double kExactDoubles = 4503599627370496.0;

// Nothing where `stop` says so before it is done.
template <class Value>
std::optional<std::vector<std::int32_t>> eliminate_all(const ReducedProblem& problem,
                                                       const EliminationOrder& order,
                                                       const std::function<bool()>& stop) {
  std::vector<std::int32_t> sizes;
  std::vector<std::vector<Value>> costs;
  std::vector<const Value*> unary;
  std::vector<std::vector<Value>> tables;
  std::vector<typename Elimination<Value>::Term> terms;
  const auto convert = [](const std::vector<std::int64_t>& from) {
    std::vector<Value> result;
    result.reserve(from.size());
    for (const std::int64_t cost : from) {
      result.push_back(cost >= kForbidden ? Elimination<Value>::kNever : static_cast<Value>(cost));
    }
    return result;
  };
  for (const ReducedNode& node : problem.nodes) {
    sizes.push_back(node.size());
    costs.push_back(convert(node.cost));
  }
  for (const auto& cost : costs) unary.push_back(cost.data());
  for (const ReducedEdge& edge : problem.edges) tables.push_back(convert(edge.table));
  for (std::size_t e = 0; e < tables.size(); ++e) {
    terms.push_back({problem.edges[e].a, problem.edges[e].b, tables[e].data()});
  }
  std::vector<std::int32_t> values(sizes.size(), 0);
  if (!Elimination<Value>().solve(order, sizes, unary, terms, values, stop)) return std::nullopt;
  return values;
}

EliminationOrder whole_order(const ReducedProblem& problem) {
  std::vector<std::int32_t> sizes;
  for (const ReducedNode& node : problem.nodes) sizes.push_back(node.size());
  std::vector<EliminationOrder::Pair> pairs;
  for (const ReducedEdge& edge : problem.edges) pairs.push_back({edge.a, edge.b});
  EliminationOrder order;
  order.find(sizes, pairs, kExactLimits, std::vector<double>(sizes.size(), 0.0));
  return order;
}

class Solver {
 public:
  Solver(const SelectionProblem& problem, const Budget& budget, Rng rng,
         const SelectionOptions& options)
      : problem_(problem),
        options_(options),
        // Threads find things out in an order that another run does not repeat.
        threads_(budget.evaluations ? 1 : std::max(1, budget.threads)),
        rng_(rng),
        incumbent_(budget, options),
        clock_(without_evaluations(budget)),
        reduction_(problem, {.stop = [this] { return time_is_over(kReductionShare); }}) {}

  SelectionResult run() {
    const ReducedProblem& reduced = reduction_.problem();
    incumbent_.set_nodes_left(reduced.num_nodes());
    if (reduced.infeasible) return infeasible_result();
    tables_ = std::make_unique<CostTables>(reduced);
    incumbent_.raise_bound(reduced.constant);
    if (!eliminate() && !branch()) search();
    return no_worse_than_start(result());
  }

 private:
  // What is no evaluation is not counted as one, but takes time.
  static Budget without_evaluations(Budget budget) {
    budget.evaluations.reset();
    return budget;
  }
  bool time_is_over(double share = 1) const {
    return clock_.spent(0) ||
           (clock_.seconds && clock_.elapsed_seconds() > share * *clock_.seconds);
  }

  // Without limits, if tables stay small enough.
  bool eliminate() {
    const ReducedProblem& reduced = reduction_.problem();
    if (reduced.limited()) return false;
    const EliminationOrder order = whole_order(reduced);
    if (!order.fixed().empty()) return false;
    const auto stop = [&] { return time_is_over(); };
    const auto values = tables_->forbidden() < kExactDoubles
                            ? eliminate_all<double>(reduced, order, stop)
                            : eliminate_all<std::int64_t>(reduced, order, stop);
    if (!values) return false;
    const Assignment best(*tables_, *values);
    incumbent_.offer(best);
    incumbent_.raise_bound(best.blocked() == 0 ? best.cost() : kForbidden);
    return true;
  }

  // Few nodes, with a limit.
  bool branch() {
    if (reduction_.problem().num_nodes() > kBranchNodes) return false;
    const auto stop = [&] { return time_is_over(); };
    if (!BranchSearch(*tables_).run(kBranchSteps, incumbent_, stop)) return false;
    if (incumbent_.feasible()) {
      incumbent_.raise_bound(incumbent_.cost());
    } else {
      incumbent_.offer(Assignment(*tables_, std::vector<std::int32_t>(tables_->num_nodes(), 0)));
      incumbent_.raise_bound(kForbidden);
    }
    return true;
  }

  void search() {
    SelectionSearch search(*tables_, incumbent_, reduction_.exact());
    if (options_.start) search.set_start(reduction_.project(*options_.start));
    search.run(threads_, rng_);
  }

  // No choice is feasible: the cheapest strategy of each node.
  SelectionResult infeasible_result() {
    SelectionResult result;
    for (std::int32_t i = 0; i < problem_.num_nodes(); ++i) {
      const auto costs = problem_.costs(i);
      result.strategies.push_back(
          static_cast<std::int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin()));
    }
    result.cost = evaluate(problem_, result.strategies).cost;
    result.proven = reduction_.exact();
    result.lower_bound = result.proven ? kForbidden : 0;
    return result;
  }

  SelectionResult result() {
    SelectionResult result;
    result.strategies = reduction_.restore(incumbent_.choice());
    const SelectionValue value = evaluate(problem_, result.strategies);
    result.cost = value.cost;
    result.feasible = value.feasible;
    EMPLACE_CHECK(!incumbent_.feasible() || value.cost == incumbent_.cost());
    EMPLACE_CHECK(value.feasible == incumbent_.feasible());
    result.lower_bound = reduction_.exact() ? incumbent_.bound() : 0;
    if (result.feasible) result.lower_bound = std::min(result.lower_bound, result.cost);
    result.proven = reduction_.exact() && (result.feasible ? result.lower_bound >= result.cost
                                                           : result.lower_bound >= kForbidden);
    result.first_feasible_seconds = incumbent_.first_feasible();
    result.evaluations = incumbent_.evaluations();
    return result;
  }

  // What was given may lie outside of what the reductions left.
  SelectionResult no_worse_than_start(SelectionResult result) const {
    if (!options_.start) return result;
    const SelectionValue given = evaluate(problem_, *options_.start);
    if (!given.feasible || (result.feasible && result.cost <= given.cost)) return result;
    result.strategies = *options_.start;
    result.cost = given.cost;
    result.feasible = true;
    result.first_feasible_seconds = 0;
    return result;
  }

  const SelectionProblem& problem_;
  const SelectionOptions& options_;
  int threads_;
  Rng rng_;
  SelectionIncumbent incumbent_;
  const Budget clock_;
  Reduction reduction_;
  std::unique_ptr<CostTables> tables_;
};

}  // namespace

SelectionResult select_strategies(const SelectionProblem& problem, const Budget& budget, Rng rng,
                                  const SelectionOptions& options) {
  return Solver(problem, budget.or_default(), rng, options).run();
}

}  // namespace emplace
