#include "learn/train/environment.h"

#include <future>

#include <gtest/gtest.h>

#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

TEST(Environment, counts_what_measuring_would_have_taken) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 100, {graph.parameter("p", 600)}, 8);
  graph.op("b", 100, {a, graph.parameter("q", 600)}, 8);
  PlaceContext context(compile_timed(graph.build(), gpu_cluster(2, 1'000)));
  Environment environment(context, {}, "test");
  const Problem& problem = environment.problem();
  Placement together(problem.num_ops(), 0);
  Placement apart = together;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const std::string name(problem.graph().op_name(op));
    if (name == "b" || name == "q") apart[op] = 1;
  }
  auto pending = environment.evaluate({together, apart});
  EXPECT_EQ(environment.simulated_time(), 0);
  const std::vector<SampleOutcome> outcomes = pending.get();
  ASSERT_FALSE(outcomes[0].fits());
  ASSERT_TRUE(outcomes[1].fits());
  EXPECT_EQ(environment.simulated_time(), outcomes[0].step + 15 * outcomes[1].step);
}

// Who looks while others are evaluated sees the same number whatever the threads have done by then.
TEST(Environment, counts_placements_when_they_begin) {
  TimedGraph graph;
  graph.op("a", 100, {});
  PlaceContext context(compile_timed(graph.build(), gpu_cluster(2)));
  std::promise<void> open;
  const std::shared_future<void> gate = open.get_future().share();
  context.evaluator().measure_with([gate](const Placement&, const ReadyOrder&) {
    gate.wait();
    return Evaluation{.step = 7};
  });
  Budget budget;
  budget.evaluations = 4;
  Environment environment(context, budget, "test");
  const Placement placement(environment.problem().num_ops(), 0);
  auto pending = environment.evaluate({placement, placement, placement});
  EXPECT_EQ(context.evaluations(), 3);
  EXPECT_EQ(environment.affordable(5), 1);
  auto last = environment.evaluate_with_starts({placement});
  EXPECT_EQ(context.evaluations(), 4);
  EXPECT_TRUE(environment.spent());
  open.set_value();
  EXPECT_EQ(pending.get().size(), 3U);
  EXPECT_EQ(last.get().size(), 1U);
  EXPECT_EQ(context.evaluations(), 4);
}

TEST(Environment, counts_what_needs_a_missing_link_once) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 100, {}, 8);
  graph.op("b", 100, {a}, 8);
  ClusterSpec spec = gpu_cluster(2);
  spec.links.clear();
  PlaceContext context(compile_timed(graph.build(), spec));
  Environment environment(context, {}, "test");
  EXPECT_FALSE(environment.evaluate({Placement{0, 1}}).get().front().valid);
  EXPECT_EQ(context.evaluations(), 1);
}

}  // namespace
}  // namespace emplace::learn
