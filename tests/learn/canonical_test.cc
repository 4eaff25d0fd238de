#include "learn/general/canonical.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.h"

#include "placer/evaluator.h"

#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> chain_on(ClusterSpec spec, int ops = 6) {
  TimedGraph graph;
  TensorId at = graph.op("op0", 10, {});
  for (int i = 1; i < ops; ++i) {
    at = graph.op(std::string("op").append(std::to_string(i)), 10 + i, {at}, 5000);
  }
  return compile_timed(graph.build(), std::move(spec));
}

TEST(InOrder, names_alike_devices_as_the_forward_pass_comes_to_them) {
  const auto problem = chain_on(gpu_cluster(4));
  EXPECT_EQ(in_order(*problem, {3, 3, 1, 1, 0, 0}), (Placement{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(in_order(*problem, {2, 2, 2, 2, 2, 2}), (Placement{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(in_order(*problem, {0, 0, 1, 2, 2, 3}), (Placement{0, 0, 1, 2, 2, 3}));
}

TEST(InOrder, leaves_faster_devices_where_they_are) {
  ClusterSpec spec = gpu_cluster(3);
  spec.devices[1].slowdown = Decimal{2, 0};
  const auto problem = chain_on(spec);
  // 0 and 2 are alike.
  EXPECT_EQ(in_order(*problem, {2, 2, 1, 1, 0, 0}), (Placement{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(in_order(*problem, {1, 1, 2, 2, 0, 0}), (Placement{1, 1, 0, 0, 2, 2}));
}

TEST(InOrder, leaves_larger_devices_where_they_are) {
  ClusterSpec spec = gpu_cluster(2, 1'000'000);
  spec.devices[0].memory = 2'000'000;
  const Placement placement{1, 1, 1, 0, 0, 0};
  EXPECT_EQ(in_order(*chain_on(spec), placement), placement);
}

TEST(InOrder, leaves_devices_that_may_run_other_ops_where_they_are) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {});
  graph.add({.name = "b", .type = "compute", .inputs = {a}, .devices = {"gpu0"}}, 10);
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_EQ(in_order(*problem, {1, 0}), (Placement{1, 0}));
}

TEST(InOrder, keeps_the_step_time) {
  ClusterSpec spec = gpu_cluster(4);
  spec.devices[3].slowdown = Decimal{2, 0};
  const auto problem = chain_on(spec, 12);
  Evaluator evaluator(problem);
  Rng rng(1);
  int changed = 0;
  for (int trial = 0; trial < 50; ++trial) {
    Placement placement(problem->num_ops());
    for (DeviceId& device : placement) device = static_cast<DeviceId>(rng.below(4));
    const Placement ordered = in_order(*problem, placement);
    EXPECT_EQ(evaluator.evaluate(ordered), evaluator.evaluate(placement));
    EXPECT_EQ(in_order(*problem, ordered), ordered);
    if (ordered != placement) ++changed;
  }
  EXPECT_GT(changed, 10);
}

}  // namespace
}  // namespace emplace::learn
