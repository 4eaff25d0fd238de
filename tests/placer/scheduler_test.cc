#include "placer/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "placer/evaluator.h"

#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Scheduler, fifo_gives_no_priorities) {
  TimedGraph graph;
  graph.op("a", 1, {});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_TRUE(make_schedule(*problem, {0}, "fifo").fifo());
}

TEST(Scheduler, unknown_name_is_an_error_that_lists_the_known_ones) {
  TimedGraph graph;
  graph.op("a", 1, {});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  try {
    make_schedule(*problem, {0}, "lifo");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOption);
    EXPECT_THAT(error.what(), HasSubstr("'lifo'"));
    EXPECT_THAT(error.what(), HasSubstr("fifo, pct, msr"));
  }
}

TEST(Scheduler, every_listed_scheduler_can_be_made) {
  TimedGraph graph;
  graph.op("a", 1, {});
  const auto problem = compile_timed(graph.build(), gpu_cluster(1));
  for (const SchedulerInfo& info : schedulers()) {
    EXPECT_NO_THROW(make_schedule(*problem, {0}, info.key)) << info.key;
  }
}

TEST(Scheduler, pct_counts_the_transfers_and_durations_of_the_placement) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {}, 3000);
  graph.op("b", 20, {a});
  graph.op("c", 4, {a});
  ClusterSpec spec = gpu_cluster(2);
  spec.devices[1].slowdown = {2, 0};
  const auto problem = compile_timed(graph.build(), spec);
  EXPECT_THAT(make_schedule(*problem, {0, 0, 0}, "pct").priorities,
              ElementsAre(30'000, 20'000, 4'000));
  EXPECT_THAT(make_schedule(*problem, {0, 1, 0}, "pct").priorities,
              ElementsAre(10'000 + 3'000 + 40'000, 40'000, 4'000));
}

// On gpu0 the short op is listed first, but the long chain hangs on the other one.
TEST(Scheduler, pct_runs_the_op_with_the_long_tail_first) {
  TimedGraph graph;
  graph.op("short", 10, {});
  const TensorId head = graph.op("head", 10, {});
  graph.op("tail", 50, {head});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const Placement placement{0, 0, 1};
  Evaluator evaluator(problem);
  EXPECT_EQ(evaluator.evaluate(placement).step, 71'000);
  EXPECT_EQ(evaluator.evaluate(placement, make_schedule(*problem, placement, "pct")).step, 61'000);
}

// Both heads have one successor of the same length; `far` has its on the other device.
TEST(Scheduler, msr_prefers_the_op_that_unblocks_another_device) {
  TimedGraph graph;
  const TensorId near = graph.op("near", 10, {}, 0);
  const TensorId far = graph.op("far", 10, {}, 0);
  graph.op("near_next", 30, {near});
  graph.op("far_next", 30, {far});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_THAT(make_schedule(*problem, {0, 0, 0, 1}, "msr").priorities,
              ElementsAre(30'000, 60'000, 0, 0));
}

TEST(Scheduler, msr_looks_through_views_and_counts_a_successor_once) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {});
  const TensorId v = graph.view("v", a);
  graph.op("b", 20, {v});
  graph.op("c", 5, {v, v});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_THAT(make_schedule(*problem, {0, 0, 0, 0}, "msr").priorities,
              ElementsAre(25'000, 25'000, 0, 0));
}

TEST(Scheduler, priorities_never_overflow_where_instant_ops_multiply_paths) {
  TimedGraph graph;
  TensorId left = graph.op("head", 1, {});
  TensorId right = graph.op("other_head", 1, {});
  for (int i = 0; i < 100; ++i) {  // each level doubles the number of paths
    const TensorId next_left = graph.op("l" + std::to_string(i), 0, {left, right});
    right = graph.op("r" + std::to_string(i), 0, {left, right});
    left = next_left;
  }
  graph.op("end", 1000, {left, right});
  const auto problem = compile_timed(graph.build(), gpu_cluster(1));
  const Placement placement(problem->num_ops(), 0);
  const std::vector<std::int64_t> priorities = make_schedule(*problem, placement, "msr").priorities;
  EXPECT_GT(priorities[0], std::int64_t{1} << 58);
  for (const std::int64_t priority : priorities) EXPECT_GE(priority, 0);
}

TEST(Scheduler, step_under_any_scheduler_is_at_least_the_longest_path) {
  Rng rng(11);
  for (int i = 0; i < 100; ++i) {
    const auto problem = random_problem(rng);
    const Placement placement = random_placement(*problem, rng);
    Evaluator evaluator(problem);
    Nanoseconds longest = 0;
    for (const std::int64_t rank : make_schedule(*problem, placement, "pct").priorities) {
      longest = std::max(longest, rank);
    }
    for (const SchedulerInfo& info : schedulers()) {
      const Schedule schedule = make_schedule(*problem, placement, info.key);
      EXPECT_GE(evaluator.evaluate(placement, schedule).step, longest) << info.key;
    }
  }
}

}  // namespace
}  // namespace emplace
