// The solver against trying everything, on small problems of every kind.
#include "selection/solve.h"

#include <atomic>

#include <gtest/gtest.h>

#include "random_selection.h"

namespace emplace {
namespace {

using testing::least_cost;
using testing::random_selection;
using testing::RandomSelection;

// Runs until the proof, or until the optimum that is known is found.
SelectionResult solve_to(const SelectionProblem& problem, std::optional<std::int64_t> optimum,
                         std::uint64_t seed, int threads = 1) {
  std::atomic<bool> found{false};
  Budget budget;
  budget.seconds = optimum ? 20 : 0.02;
  budget.threads = threads;
  budget.cancelled = &found;
  SelectionOptions options;
  options.progress = [&](const SelectionProgress& progress) {
    if (progress.feasible && optimum && progress.cost <= *optimum) found = true;
  };
  return select_strategies(problem, budget, Rng(seed), options);
}

Budget evaluations(std::int64_t count, int threads = 1) {
  Budget budget;
  budget.evaluations = count;
  budget.threads = threads;
  return budget;
}

void expect_right(const SelectionProblem& problem, std::uint64_t seed) {
  const auto optimum = least_cost(problem);
  const SelectionResult result = solve_to(problem, optimum, seed);
  const SelectionValue value = evaluate(problem, result.strategies);
  EXPECT_EQ(value.cost, result.cost);
  EXPECT_EQ(value.feasible, result.feasible);
  ASSERT_EQ(result.feasible, optimum.has_value());
  if (optimum) {
    EXPECT_EQ(result.cost, *optimum);
    EXPECT_LE(result.lower_bound, *optimum);
    EXPECT_GE(result.first_feasible_seconds, 0);
  } else {
    EXPECT_TRUE(!result.proven || result.lower_bound == kForbidden);
    EXPECT_LT(result.first_feasible_seconds, 0);
  }
}

struct Shape {
  const char* name;
  RandomSelection random;
  int problems;
};

class SelectionSolver : public ::testing::TestWithParam<Shape> {};

TEST_P(SelectionSolver, finds_the_optimum_and_bounds_it) {
  for (int seed = 1; seed <= GetParam().problems; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    expect_right(random_selection(GetParam().random, rng), seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SelectionSolver,
    ::testing::Values(
        Shape{"no_limit", {.limited = false}, 200},
        Shape{"no_limit_free", {.forbidden = 0, .limited = false}, 100},
        Shape{"tight", {.tightness = 0.1}, 200},
        Shape{"loose", {.forbidden = 0.05, .tightness = 0.4}, 200},
        Shape{"dense",
              {.nodes = 7, .strategies = 3, .edges = 3, .forbidden = 0.1, .tightness = 0.25},
              200},
        Shape{"sparse",
              {.nodes = 8, .strategies = 3, .edges = 0.7, .forbidden = 0.1, .tightness = 0.2},
              200},
        Shape{"ties", {.nodes = 7, .strategies = 3, .tightness = 0.2, .largest = 1}, 100},
        Shape{
            "large_costs", {.forbidden = 0.1, .limited = false, .largest = kForbidden / 100}, 100},
        Shape{"single", {.nodes = 8, .strategies = 1, .forbidden = 0.02, .tightness = 1}, 50}),
    [](const auto& one) { return one.param.name; });

TEST(SelectionSolver, proves_problems_without_a_limit) {
  for (int seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const SelectionProblem problem = random_selection({.limited = false}, rng);
    const SelectionResult result = select_strategies(problem);
    EXPECT_TRUE(result.proven);
    EXPECT_EQ(result.lower_bound, least_cost(problem).value_or(kForbidden));
  }
}

// A tree with many optima. Without a limit elimination proves any tree, leaf after leaf.
SelectionProblem tree_with_ties(Rng& rng) {
  constexpr std::int32_t kNodes = 300;
  constexpr std::int32_t kStrategies = 6;
  SelectionProblem problem;
  const auto costs = [&](std::int32_t count) {
    std::vector<std::int64_t> result;
    for (std::int32_t i = 0; i < count; ++i) {
      result.push_back(static_cast<std::int64_t>(rng.below(3)));
    }
    return result;
  };
  for (std::int32_t node = 0; node < kNodes; ++node) {
    problem.add_node(costs(kStrategies));
    if (node == 0) continue;
    const auto parent = static_cast<std::int32_t>(rng.below(node));
    problem.add_edge(parent, node, costs(kStrategies * kStrategies));
  }
  return problem;
}

TEST(SelectionSolver, ends_by_proof_with_the_same_result_for_every_seed_and_threads) {
  Rng rng(7);
  const SelectionProblem problem = tree_with_ties(rng);
  const SelectionResult one = select_strategies(problem, evaluations(100), Rng(1));
  const SelectionResult two = select_strategies(problem, evaluations(100, 2), Rng(9));
  EXPECT_TRUE(one.proven);
  EXPECT_EQ(one.evaluations, 0);
  EXPECT_EQ(one.strategies, two.strategies);
}

// A grid, whose elimination would need tables of 6^20 entries, under a limit that half of the usage
// has to go for: nothing is proven soon.
SelectionProblem hard_problem() {
  constexpr std::int32_t kSide = 20;
  constexpr std::int32_t kStrategies = 6;
  Rng rng(11);
  SelectionProblem problem;
  const auto random = [&](std::int32_t count) {
    std::vector<std::int64_t> result;
    for (std::int32_t i = 0; i < count; ++i) {
      result.push_back(static_cast<std::int64_t>(rng.below(1000)));
    }
    return result;
  };
  for (std::int32_t node = 0; node < kSide * kSide; ++node) {
    problem.add_node(random(kStrategies), random(kStrategies), {node, node + 40});
    const auto join = [&](std::int32_t other) {
      problem.add_edge(other, node, random(kStrategies * kStrategies));
    };
    if (node % kSide > 0) join(node - 1);
    if (node >= kSide) join(node - kSide);
  }
  problem.set_usage_limit(40 * 250);
  return problem;
}

TEST(SelectionSolver, gives_the_same_result_for_the_same_evaluations_whatever_the_threads) {
  const SelectionProblem problem = hard_problem();
  for (const std::int64_t count : {20, 1500}) {
    SCOPED_TRACE(count);
    const SelectionResult one = select_strategies(problem, evaluations(count), Rng(1));
    const SelectionResult two = select_strategies(problem, evaluations(count, 2), Rng(1));
    ASSERT_FALSE(one.proven);
    EXPECT_EQ(one.strategies, two.strategies);
    EXPECT_EQ(one.lower_bound, two.lower_bound);
  }
}

// A jump may still try its ten neighbourhoods.
TEST(SelectionSolver, stops_when_its_evaluations_are_spent) {
  const SelectionProblem problem = hard_problem();
  for (const std::int64_t count : {0, 1, 20, 1500}) {
    const SelectionResult result = select_strategies(problem, evaluations(count));
    ASSERT_FALSE(result.proven);
    EXPECT_GE(result.evaluations, count);
    EXPECT_LE(result.evaluations, count + 10);
    EXPECT_EQ(evaluate(problem, result.strategies).cost, result.cost);
  }
}

TEST(SelectionSolver, stops_at_once_when_cancelled) {
  const SelectionProblem problem = hard_problem();
  const std::atomic<bool> cancelled{true};
  Budget budget;
  budget.seconds = 3600;
  budget.cancelled = &cancelled;
  const SelectionResult result = select_strategies(problem, budget);
  EXPECT_LE(result.evaluations, 1);
  EXPECT_EQ(evaluate(problem, result.strategies).cost, result.cost);
}

// Neither reductions nor what follows them go on.
TEST(SelectionSolver, proves_nothing_more_when_cancelled) {
  const std::atomic<bool> cancelled{true};
  for (const bool limited : {false, true}) {
    Rng rng(1);
    const SelectionProblem problem = random_selection({.nodes = 30, .limited = limited}, rng);
    Budget budget;
    ASSERT_TRUE(select_strategies(problem, evaluations(1000)).proven);
    budget.cancelled = &cancelled;
    const SelectionResult result = select_strategies(problem, budget);
    EXPECT_FALSE(result.proven);
    EXPECT_LE(result.evaluations, 1);
    EXPECT_EQ(evaluate(problem, result.strategies).cost, result.cost);
  }
}

TEST(SelectionSolver, walks_in_several_threads) {
  for (int seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const SelectionProblem problem = random_selection({.tightness = 0.2}, rng);
    const auto optimum = least_cost(problem);
    const SelectionResult result = solve_to(problem, optimum, seed, 2);
    EXPECT_EQ(result.feasible, optimum.has_value());
    if (optimum) {
      EXPECT_EQ(result.cost, *optimum);
    }
  }
}

TEST(SelectionSolver, takes_a_problem_without_nodes) {
  const SelectionResult result = select_strategies(SelectionProblem());
  EXPECT_TRUE(result.proven);
  EXPECT_TRUE(result.feasible);
  EXPECT_EQ(result.cost, 0);
}

TEST(SelectionSolver, begins_from_what_it_is_given) {
  Rng rng(3);
  const SelectionProblem problem =
      random_selection({.nodes = 40, .strategies = 5, .forbidden = 0, .tightness = 0.4}, rng);
  const SelectionResult first = select_strategies(problem, evaluations(500));
  ASSERT_TRUE(first.feasible);
  const SelectionResult again =
      select_strategies(problem, evaluations(0), Rng(1), {.start = first.strategies});
  EXPECT_TRUE(again.feasible);
  EXPECT_LE(again.cost, first.cost);
}

}  // namespace
}  // namespace emplace
