#include "sim/overlap_slowdown.h"

#include <gtest/gtest.h>

#include "sim/simulator.h"

#include "support/timed_graph.h"

namespace emplace {
namespace {

constexpr Nanoseconds kOneMicrosecond = 1000;

// a (100 us) sends 50,000 bytes (50 us) to gpu1, which computes b for 200 us meanwhile; c reads
// what was sent.
std::shared_ptr<const Problem> sending() {
  TimedGraph graph;
  const TensorId a = graph.op("a", 100, {}, 50'000);
  graph.op("b", 200, {});
  graph.op("c", 10, {a});
  return compile(graph.build(), std::make_shared<const Cluster>(gpu_cluster(2)),
                 CostMode::kMeasured);
}

TEST(OverlapSlowdown, ops_are_slow_only_while_something_is_carried) {
  const auto problem = sending();
  const Placement placement{0, 1, 1};
  EXPECT_EQ(with_slow_overlap(problem, placement, {}, 1).step, 210 * kOneMicrosecond);
  const Timeline slow = with_slow_overlap(problem, placement, {}, 2);
  EXPECT_EQ(slow.ops[0].finish, 100 * kOneMicrosecond) << "nothing was sent before it ended";
  EXPECT_EQ(slow.ops[1].finish, 225 * kOneMicrosecond) << "50 us at half speed";
  EXPECT_EQ(slow.step, 235 * kOneMicrosecond);
}

TEST(OverlapSlowdown, nothing_changes_where_nothing_is_sent) {
  const auto problem = sending();
  const Placement placement(3, 0);
  EXPECT_EQ(with_slow_overlap(problem, placement, {}, 1.13).step,
            Simulator(problem).run(placement, {}).step);
}

}  // namespace
}  // namespace emplace
