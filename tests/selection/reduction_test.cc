// What reductions leave has the optimum of what they began with.
#include "selection/reduction.h"

#include <gtest/gtest.h>

#include "random_selection.h"

namespace emplace {
namespace {

using testing::least_cost;
using testing::random_selection;

// Tries every choice for what is left, and values it as the whole problem does.
std::optional<std::int64_t> least_left(const SelectionProblem& problem,
                                       const Reduction& reduction) {
  const ReducedProblem& left = reduction.problem();
  if (left.infeasible) return std::nullopt;
  std::optional<std::int64_t> best;
  std::vector<std::int32_t> choice(left.num_nodes(), 0);
  while (true) {
    const SelectionValue value = evaluate(problem, reduction.restore(choice));
    EXPECT_EQ(value.cost, reduced_cost(left, choice));
    std::vector<std::int64_t> usage(left.slack.size(), 0);
    bool fits = value.cost < kForbidden;
    for (std::int32_t i = 0; i < left.num_nodes(); ++i) {
      for (const UsagePiece& piece : left.nodes[i].pieces) {
        for (std::int32_t t = piece.begin; t < piece.end; ++t) {
          usage[t] += piece.usage[choice[i]];
          fits &= usage[t] <= left.slack[t];
        }
      }
    }
    EXPECT_EQ(fits, value.feasible);
    if (value.feasible && (!best || value.cost < *best)) best = value.cost;
    std::int32_t i = 0;
    while (i < left.num_nodes() && ++choice[i] == left.nodes[i].size()) choice[i++] = 0;
    if (i == left.num_nodes()) return best;
  }
}

void expect_kept(const ReductionOptions& options) {
  for (int seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const SelectionProblem problem =
        random_selection({.forbidden = 0.05 * static_cast<double>(seed % 6),
                          .limited = seed % 4 != 0,
                          .tightness = 0.1 * static_cast<double>(seed % 5)},
                         rng);
    const Reduction reduction(problem, options);
    ASSERT_EQ(least_left(problem, reduction), least_cost(problem));
  }
}

TEST(SelectionReduction, keeps_the_optimum) {
  expect_kept({});
}

TEST(SelectionReduction, keeps_it_with_dominance_alone) {
  expect_kept({.contraction = false, .peeling = false});
}

TEST(SelectionReduction, keeps_it_with_contraction_alone) {
  expect_kept({.dominance = false, .peeling = false});
}

TEST(SelectionReduction, keeps_it_with_peeling_alone) {
  expect_kept({.dominance = false, .contraction = false});
}

// Wherever that is, and it is where it is told to.
TEST(SelectionReduction, keeps_it_when_it_is_stopped) {
  for (int seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const SelectionProblem problem = random_selection({.limited = seed % 3 != 0}, rng);
    const auto optimum = least_cost(problem);
    for (const int asked : {0, 1, 4, 8, 20}) {
      int left = asked;
      const Reduction reduction(problem, {.stop = [&] { return --left < 0; }});
      ASSERT_EQ(least_left(problem, reduction), optimum);
      EXPECT_GE(left, -10) << "it goes on though it was told to stop";
    }
  }
}

TEST(SelectionReduction, leaves_nothing_of_a_tree_without_usage) {
  Rng rng(1);
  SelectionProblem problem;
  for (int i = 0; i < 100; ++i) {
    problem.add_node(std::vector<std::int64_t>{5, 2, 7});
    if (i == 0) continue;
    std::vector<std::int64_t> table(9);
    for (auto& cost : table) cost = static_cast<std::int64_t>(rng.below(100));
    problem.add_edge(i, static_cast<std::int32_t>(rng.below(i)), table);
  }
  EXPECT_EQ(Reduction(problem).problem().num_nodes(), 0);
}

TEST(SelectionReduction, joins_nodes_that_must_agree) {
  SelectionProblem problem;
  const std::vector<std::int64_t> agree{0, kForbidden, kForbidden, 0};
  for (int i = 0; i < 10; ++i) {
    problem.add_node(std::vector<std::int64_t>{i % 3, 1}, std::vector<std::int64_t>{i, 20 - i},
                     {i, i + 3});
    if (i > 0) problem.add_edge(i - 1, i, agree);
  }
  problem.set_usage_limit(40);
  EXPECT_LE(Reduction(problem).problem().num_nodes(), 1);
}

}  // namespace
}  // namespace emplace
