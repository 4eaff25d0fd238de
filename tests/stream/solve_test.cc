// Search and bound of streams together: optima found and proven against all placements of small
// problems, the same for any number of threads, and what is said when nothing fits.
#include "stream/solve.h"

#include <atomic>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"

#include "support/budgets.h"
#include "support/random_problem.h"
#include "support/streams.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

struct Solved {
  PlaceResult result;
  Evaluation value;
  Nanoseconds bound = 0;
  bool optimal = false;
  std::int64_t evaluations = 0;
};

Solved solve(const std::shared_ptr<const Problem>& problem, Overlap overlap, const Budget& budget,
             std::uint64_t seed = 1, std::vector<Solution> starts = {}) {
  PlaceContext context(problem, StreamPeriod{overlap}, std::move(starts));
  Solved solved{.result = solve_stream(context, StreamPeriod{overlap}, budget, Rng(seed)),
                .value = {}};
  const std::optional<Evaluation> value =
      value_of_stream(*problem, solved.result.placement, overlap);
  EXPECT_TRUE(value.has_value()) << "refused";
  solved.value = value.value_or(Evaluation{});
  EXPECT_EQ(context.incumbent().value(), value) << "the incumbent has another value";
  solved.bound = context.incumbent().bound().step;
  solved.optimal = context.incumbent().optimal();
  solved.evaluations = context.evaluations();
  return solved;
}

struct Tally {
  int compared = 0;
  int found = 0;
  int proven = 0;
};

void compare(const std::shared_ptr<const Problem>& problem, Overlap overlap, Tally& tally) {
  const Evaluation best = best_of_all_streams(*problem, overlap).value();
  const Solved solved = solve(problem, overlap, evaluations(60'000));
  ASSERT_FALSE(solved.value < best);
  if (!best.fits()) {
    ASSERT_FALSE(solved.result.notes.empty()) << describe(*problem, {}, {});
    return;
  }
  ASSERT_LE(solved.bound, best.step) << describe(*problem, {}, {});
  ++tally.compared;
  tally.found += solved.value == best ? 1 : 0;
  tally.proven += solved.bound == best.step ? 1 : 0;
  ASSERT_EQ(solved.optimal, solved.value == best && solved.bound == best.step);
}

void compare_all(const StreamCase& one, Overlap overlap, Tally& tally) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    Rng rng = Rng(81).split(i);
    ASSERT_NO_FATAL_FAILURE(compare(random_stream(rng, one), overlap, tally)) << i;
  }
}

TEST(StreamSolve, finds_and_proves_the_optimum_of_nearly_all_small_streams) {
  for (const Overlap overlap : {Overlap::kNone, Overlap::kFull}) {
    Tally tally;
    compare_all({.accelerators = 3, .ops = 8}, overlap, tally);
    compare_all({.accelerators = 2, .cpus = 1, .ops = 8}, overlap, tally);
    compare_all({.accelerators = 3, .unequal = true, .ops = 7}, overlap, tally);
    EXPECT_EQ(tally.compared, 120);
    EXPECT_EQ(tally.found, tally.compared);
    EXPECT_GE(tally.proven * 100, tally.compared * (overlap == Overlap::kNone ? 98 : 75));
  }
}

TEST(StreamSolve, finds_the_optimum_of_small_streams_of_little_memory) {
  for (const Overlap overlap : {Overlap::kNone, Overlap::kFull}) {
    Tally tally;
    compare_all({.accelerators = 2, .tight = true, .ops = 9}, overlap, tally);
    EXPECT_GT(tally.compared, 30);
    EXPECT_EQ(tally.found, tally.compared);
    EXPECT_GT(tally.proven, tally.compared / 2);
  }
}

TEST(StreamSolve, finds_the_optimum_of_small_random_problems_with_pins_and_missing_links) {
  for (const Overlap overlap : {Overlap::kNone, Overlap::kFull}) {
    Tally tally;
    for (std::uint64_t i = 0; i < 300; ++i) {
      Rng rng = Rng(82).split(i);
      const auto problem = random_problem(rng, {.max_ops = 9, .max_devices = 4, .all_alive = true});
      if (problem->num_groups() > 7 || !has_linked_devices(*problem)) continue;
      ASSERT_NO_FATAL_FAILURE(compare(problem, overlap, tally)) << i;
    }
    EXPECT_GT(tally.compared, 100);
    EXPECT_EQ(tally.found, tally.compared);
    EXPECT_GT(tally.proven, tally.compared * 4 / 5);
  }
}

TEST(StreamSolve, answers_and_proves_the_same_for_every_number_of_threads) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    Rng rng = Rng(83).split(i);
    const auto problem = random_stream(rng, {.accelerators = 3, .cpus = 1, .ops = 40});
    const Solved one = solve(problem, Overlap::kNone, evaluations(300'000), i);
    for (const int threads : {1, 3}) {
      const Solved other = solve(problem, Overlap::kNone, evaluations(300'000, threads), i);
      EXPECT_EQ(one.result.placement, other.result.placement);
      EXPECT_EQ(one.bound, other.bound);
      EXPECT_EQ(one.evaluations, other.evaluations);
    }
  }
}

TEST(StreamSolve, ends_when_several_threads_with_nothing_but_time_have_proven_the_optimum) {
  Rng rng(84);
  const auto problem = random_stream(rng, {.accelerators = 2, .cpus = 1, .ops = 8});
  const Evaluation best = best_of_all_streams(*problem, Overlap::kNone).value();
  for (const int threads : {1, 2, 3}) {
    Budget budget;
    budget.seconds = 1000;  // a test that waits for it has failed
    budget.threads = threads;
    const Solved solved = solve(problem, Overlap::kNone, budget);
    EXPECT_EQ(solved.value, best);
    EXPECT_TRUE(solved.optimal);
  }
}

TEST(StreamSolve, counts_moves_and_pricing_rounds_within_the_budget) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    Rng rng = Rng(85).split(i);
    const auto problem = random_stream(rng, {.accelerators = 3, .ops = 30});
    for (const std::int64_t count : {0, 1, 60, 5000}) {
      EXPECT_LE(solve(problem, Overlap::kNone, evaluations(count)).evaluations, count + 32);
    }
  }
}

TEST(StreamSolve, is_never_worse_than_its_starts) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    Rng rng = Rng(86).split(i);
    const auto problem = random_problem(rng, {.max_ops = 40, .all_alive = true});
    if (!has_linked_devices(*problem)) continue;
    const Placement start = random_placement(*problem, rng);
    const Evaluation value = value_of_stream(*problem, start, Overlap::kFull).value();
    const Solved solved =
        solve(problem, Overlap::kFull, evaluations(32), i, {{.placement = start}});
    EXPECT_FALSE(value < solved.value) << describe(*problem, {}, {});
  }
}

TEST(StreamSolve, stops_when_it_is_cancelled_and_still_answers) {
  const std::atomic<bool> cancelled{true};
  Budget budget;
  budget.cancelled = &cancelled;
  for (const int threads : {1, 2}) {
    budget.threads = threads;
    for (const TinyCase& tiny : tiny_cases()) {
      const Solved solved = solve(tiny.problem, Overlap::kNone, budget);
      EXPECT_EQ(solved.result.placement.size(), tiny.problem->num_ops()) << tiny.name;
    }
  }
}

std::shared_ptr<const Problem> five_ops_of_100_bytes(Bytes capacity) {
  TimedGraph graph;
  for (int i = 0; i < 5; ++i) {
    OpSpec op{.name = "op" + std::to_string(i), .type = "compute"};
    op.persistent_bytes = 100;
    graph.add(op, 10, 0);
  }
  return compile_timed(graph.build(), gpu_cluster(2, capacity));
}

TEST(StreamSolve, says_what_is_short_when_nothing_fits) {
  const Solved together = solve(five_ops_of_100_bytes(220), Overlap::kNone, evaluations(20'000));
  EXPECT_EQ(together.value.overflow, 80);
  ASSERT_EQ(together.result.notes.size(), 2U);
  EXPECT_NE(together.result.notes[1].find("no placement fits"), std::string::npos);
  EXPECT_FALSE(together.optimal);
  // All devices together have enough; whole ops do not fit.
  const Solved apart = solve(five_ops_of_100_bytes(260), Overlap::kNone, evaluations(20'000));
  EXPECT_EQ(apart.value.overflow, 40);
  EXPECT_FALSE(apart.result.notes.empty());
  const Solved enough = solve(five_ops_of_100_bytes(300), Overlap::kNone, evaluations(20'000));
  EXPECT_TRUE(enough.result.notes.empty());
  EXPECT_EQ(enough.value.step, 30'000);
  EXPECT_TRUE(enough.optimal);
}

}  // namespace
}  // namespace emplace
