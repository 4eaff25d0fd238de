#include "learn/train/environment.h"

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

}  // namespace
}  // namespace emplace::learn
