// The solver against trying everything, on small problems of every kind.
#include "selection/solve.h"

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
  std::int64_t found = kForbidden;
  SelectionOptions options;
  options.seconds = optimum ? 20 : 0.02;
  options.seed = seed;
  options.threads = threads;
  options.progress = [&](const SelectionProgress& progress) {
    if (progress.feasible) found = progress.cost;
  };
  options.cancelled = [&] { return optimum && found <= *optimum; };
  return select_strategies(problem, options);
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
    const SelectionResult result = select_strategies(problem, {.seconds = 60});
    EXPECT_TRUE(result.proven);
    EXPECT_EQ(result.lower_bound, least_cost(problem).value_or(kForbidden));
  }
}

TEST(SelectionSolver, ends_by_proof_with_the_same_result_for_every_seed_and_threads) {
  Rng rng(7);
  const SelectionProblem problem =
      random_selection({.nodes = 300, .strategies = 6, .forbidden = 0.02, .limited = false}, rng);
  const SelectionResult one = select_strategies(problem, {.seconds = 60, .threads = 1, .seed = 1});
  const SelectionResult two = select_strategies(problem, {.seconds = 60, .threads = 2, .seed = 9});
  if (!one.proven) GTEST_SKIP() << "not proven";
  EXPECT_EQ(one.strategies, two.strategies);
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
  const SelectionResult first = select_strategies(problem, {.seconds = 0.3});
  ASSERT_TRUE(first.feasible);
  const SelectionResult again =
      select_strategies(problem, {.seconds = 0, .start = first.strategies});
  EXPECT_TRUE(again.feasible);
  EXPECT_LE(again.cost, first.cost);
}

}  // namespace
}  // namespace emplace
