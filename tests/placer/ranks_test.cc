#include "placer/ranks.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;

// a -> b -> d, a -> c -> d with a heavier tensor on the way through c.
std::shared_ptr<const Problem> diamond_problem() {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {}, 2000);
  const TensorId b = graph.op("b", 20, {a}, 1000);
  const TensorId c = graph.op("c", 5, {a}, 30'000);
  graph.op("d", 1, {b, c});
  return compile_timed(graph.build(), gpu_cluster(2));
}

TEST(Ranks, upward_is_the_longest_path_to_the_end_with_transfers) {
  EXPECT_THAT(upward_ranks(*diamond_problem()), ElementsAre(48'000, 22'000, 36'000, 1'000));
}

TEST(Ranks, upward_without_transfers_counts_durations_alone) {
  EXPECT_THAT(upward_ranks(*diamond_problem(), false), ElementsAre(31'000, 21'000, 6'000, 1'000));
}

TEST(Ranks, downward_is_the_longest_path_to_the_start) {
  EXPECT_THAT(downward_ranks(*diamond_problem()), ElementsAre(0, 12'000, 12'000, 47'000));
  EXPECT_THAT(downward_ranks(*diamond_problem(), false), ElementsAre(0, 10'000, 10'000, 30'000));
}

TEST(Ranks, control_dependency_carries_no_transfer) {
  TimedGraph graph;
  graph.op("a", 10, {}, 5000);
  graph.add({.name = "b", .type = "compute", .after = {"a"}}, 7);
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_THAT(upward_ranks(*problem), ElementsAre(17'000, 7'000));
  EXPECT_THAT(downward_ranks(*problem), ElementsAre(0, 10'000));
}

TEST(Ranks, tensor_into_a_view_is_not_sent) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {}, 5000);
  const TensorId v = graph.view("v", a);
  graph.op("b", 7, {v});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_THAT(upward_ranks(*problem), ElementsAre(18'000, 8'000, 7'000));
}

// Straight from the definition, by recursion over all paths that were not seen yet.
std::vector<Nanoseconds> upward_by_definition(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<Nanoseconds> known(graph.num_ops(), -1);
  std::function<Nanoseconds(OpId)> up = [&](OpId op) {
    if (known[op] >= 0) return known[op];
    Nanoseconds tail = 0;
    for (const TensorId tensor : graph.outputs(op)) {
      for (const OpId next : graph.consumers(tensor)) {
        const bool together = problem.group_of(op) == problem.group_of(next);
        tail = std::max(tail, up(next) + (together ? 0 : problem.mean_transfer_time(tensor)));
      }
    }
    for (OpId next = 0; next < graph.num_ops(); ++next) {
      for (const OpId before : graph.after(next)) {
        if (before == op) tail = std::max(tail, up(next));
      }
    }
    return known[op] = tail + problem.mean_duration(op);
  };
  for (OpId op = 0; op < graph.num_ops(); ++op) up(op);
  return known;
}

TEST(Ranks, agree_with_the_definition_and_with_each_other_on_random_graphs) {
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    const auto problem = random_problem(rng);
    const std::vector<Nanoseconds> up = upward_ranks(*problem);
    ASSERT_EQ(up, upward_by_definition(*problem));
    // The longest path has one length, from whichever end it is measured.
    const std::vector<Nanoseconds> down = downward_ranks(*problem);
    Nanoseconds longest_up = 0;
    Nanoseconds longest_down = 0;
    Nanoseconds longest_through = 0;
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      longest_up = std::max(longest_up, up[op]);
      longest_down = std::max(longest_down, down[op] + problem->mean_duration(op));
      longest_through = std::max(longest_through, up[op] + down[op]);
    }
    EXPECT_EQ(longest_up, longest_down);
    EXPECT_EQ(longest_up, longest_through);
  }
}

}  // namespace
}  // namespace emplace
