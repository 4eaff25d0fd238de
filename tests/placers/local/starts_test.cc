#include "placers/local/starts.h"

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "placer/scheduler.h"

#include "support/budgets.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

TEST(ClassicalStarts, are_valid_valued_sorted_and_distinct) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    Rng rng = Rng(77).split(i);
    const auto problem = random_problem(rng, {.max_ops = 25});
    PlaceContext context(problem);
    const std::vector<Solution> starts = classical_starts(context, Budget{}, Rng(1), 100);
    ASSERT_FALSE(starts.empty());
    EXPECT_EQ(context.incumbent().value(), starts.front().value);
    for (std::size_t a = 0; a < starts.size(); ++a) {
      check_placement(*problem, starts[a].placement);
      EXPECT_EQ(starts[a].value,
                context.evaluator().evaluate(starts[a].placement, starts[a].schedule));
      EXPECT_FALSE(starts[a].origin.empty());
      if (a > 0) {
        EXPECT_FALSE(starts[a].value < starts[a - 1].value);
      }
      for (std::size_t b = 0; b < a; ++b) EXPECT_NE(starts[a].placement, starts[b].placement);
    }
  }
}

TEST(ClassicalStarts, count_what_they_evaluate_and_leave_most_of_the_budget) {
  const auto& problem = tiny_case("training_step_on_three_unequal").problem;
  for (const std::int64_t limit : {0, 1, 40, 400}) {
    PlaceContext context(problem);
    const auto starts = classical_starts(context, evaluations(limit), Rng(1), 100);
    EXPECT_GE(starts.size(), 1U);
    EXPECT_GT(context.evaluations(), 0);
    EXPECT_LE(context.evaluations(), limit / 4 + 16);
  }
}

TEST(ClassicalStarts, do_not_depend_on_the_number_of_threads) {
  for (std::uint64_t i = 0; i < 30; ++i) {
    Rng rng = Rng(78).split(i);
    const auto problem = random_problem(rng, {.max_ops = 25});
    for (const std::int64_t limit : {30, 100, 1000}) {
      PlaceContext one(problem);
      PlaceContext three(problem);
      const auto a = classical_starts(one, evaluations(limit, 1), Rng(i), 8);
      const auto b = classical_starts(three, evaluations(limit, 3), Rng(i), 8);
      EXPECT_EQ(one.evaluations(), three.evaluations());
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t k = 0; k < a.size(); ++k) {
        EXPECT_EQ(a[k].placement, b[k].placement);
        EXPECT_EQ(a[k].schedule.priorities, b[k].schedule.priorities);
      }
    }
  }
}

// Two chains on two devices: everything on the slow one is worse than what any placer says.
TEST(ClassicalStarts, keep_what_the_context_was_given_however_bad) {
  const auto& problem = tiny_case("two_chains_on_three_unequal").problem;
  const Placement bad(problem->num_ops(), 2);
  PlaceContext context(problem, {}, {{.placement = bad, .origin = "given"}});
  const auto starts = classical_starts(context, Budget{}, Rng(1), 2);
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[1].placement, bad);
  EXPECT_EQ(starts[1].origin, "given");
  EXPECT_LT(starts[0].value, starts[1].value);

  const std::atomic<bool> cancelled{true};
  Budget stopped;
  stopped.cancelled = &cancelled;
  PlaceContext again(problem, {}, {{.placement = bad, .origin = "given"}});
  const auto only = classical_starts(again, stopped, Rng(1), 2);
  ASSERT_EQ(only.size(), 1U);
  EXPECT_EQ(only[0].placement, bad);
  EXPECT_EQ(again.evaluations(), 0);
}

// A search that goes on has found them before, or was given what is better.
TEST(ClassicalStarts, of_a_later_part_are_those_that_it_was_given) {
  const auto& problem = tiny_case("training_step_on_three_unequal").problem;
  PlaceContext first(problem);
  const auto found = classical_starts(first, evaluations(400), Rng(1), 100);
  PlaceContext later(problem, {}, {found.back()});
  later.set_part({.index = 1, .count = 4});
  const auto starts = classical_starts(later, evaluations(400), Rng(1), 100);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts.front().placement, found.back().placement);
  EXPECT_LE(later.evaluations(), 1 + static_cast<std::int64_t>(schedulers().size()));
  PlaceContext without(problem);
  without.set_part({.index = 1, .count = 4});
  EXPECT_FALSE(classical_starts(without, evaluations(400), Rng(1), 100).empty());
}

// c waits for b alone. FIFO runs a, which became ready with b but has the lower index, first.
TEST(WithBestOrder, finds_that_the_longest_path_goes_first) {
  TimedGraph graph;
  const TensorId source = graph.source("in", "input");
  graph.op("a", 10, {source});
  const TensorId b = graph.op("b", 10, {source}, 0);
  graph.op("c", 30, {b}, 0);
  ClusterSpec spec = gpu_cluster(2);
  const auto problem = compile_timed(graph.build(), spec);
  Evaluator evaluator(problem);
  Placement placement(problem->num_ops(), 0);
  placement.back() = 1;
  const Solution best = with_best_order(evaluator, Budget{}, {.placement = placement});
  EXPECT_EQ(evaluator.evaluate(placement).step, 50'000);
  EXPECT_EQ(best.value.step, 40'000);
  EXPECT_EQ(best.value, evaluator.evaluate(best.placement, best.schedule));
  EXPECT_EQ(best.placement, placement);
}

}  // namespace
}  // namespace emplace
