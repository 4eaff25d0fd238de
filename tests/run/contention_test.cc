#include "run/contention.h"

#include <gtest/gtest.h>

#include "sim/simulator.h"

#include "support/fork.h"

namespace emplace {
namespace {

OpSpec op_of_times(const std::string& name, std::int64_t alone_us, std::int64_t busy_us) {
  return {.name = name,
          .type = "compute",
          .time_us = {{"gpu", Decimal{alone_us, 0}}, {busy_name("gpu"), Decimal{busy_us, 0}}}};
}

// Two ops without anything between them.
std::shared_ptr<const Problem> two_ops(ClusterSpec cluster) {
  GraphBuilder builder("pair");
  builder.add(op_of_times("a", 100, 150), {{.bytes = 4}});
  builder.add(op_of_times("b", 50, 100), {{.bytes = 4}});
  return compile_timed(std::make_shared<const Graph>(std::move(builder).build()),
                       std::move(cluster));
}

// While a runs, gpu1 is busy all the time or part of it: b is done sooner. By hand, in us:
//   step 100:    b's neighbour is busy throughout: 100.   a's for 50 of 100:       100 + 50 * 0.5
//   step 125:    the same.                                a's for 100 of 125:      100 + 50 * 0.8
//   step 140:                                             a's for 100 of 140:      135.714
//   step 135.7:                                           a's for 100 of 135.714:  136.842
// It tends to 136.603, where a = 100 + 50 * 100 / a.
TEST(Contention, ops_take_longer_by_as_much_as_the_others_are_busy) {
  const auto problem = two_ops(gpu_cluster(2));
  const Timeline timeline = predict(problem, {0, 1}, {});
  EXPECT_NEAR(static_cast<double>(timeline.ops[0].finish), 136'842, 2);
  EXPECT_NEAR(static_cast<double>(timeline.ops[1].finish), 100'000, 2);
  EXPECT_EQ(timeline.step, timeline.ops[0].finish);
}

TEST(Contention, a_device_by_itself_is_as_fast_as_alone) {
  const auto problem = two_ops(gpu_cluster(2));
  EXPECT_EQ(predict(problem, {0, 0}, {}).step, 150'000);
  EXPECT_EQ(predict(two_ops(gpu_cluster(1)), {0, 0}, {}).step, 150'000);
}

// Of three devices, the two others' mean counts.
TEST(Contention, idle_devices_count_as_well) {
  const auto problem = two_ops(gpu_cluster(3));
  const Timeline timeline = predict(problem, {0, 1}, {});
  EXPECT_NEAR(static_cast<double>(timeline.ops[1].finish), 75'000, 2);
}

// By hand, in us, of b, which takes 100 alone and 200 beside others: 200, 175, 185.714, 180.769.
TEST(Contention, of_slower_devices_the_excess_is_larger_too) {
  ClusterSpec cluster = gpu_cluster(2);
  cluster.devices[1].slowdown = Decimal{2, 0};
  const Timeline timeline = predict(two_ops(cluster), {0, 1}, {});
  EXPECT_NEAR(static_cast<double>(timeline.ops[0].finish), 150'000, 2);
  EXPECT_NEAR(static_cast<double>(timeline.ops[1].finish), 180'769, 2);
}

TEST(Contention, graphs_without_such_times_are_simulated_as_ever) {
  const auto problem = fork_on(gpu_cluster(2));
  const Placement placement{0, 0, 1, 0};
  const Timeline simulated = Simulator(problem).run(placement, {});
  const Timeline predicted = predict(problem, placement, {});
  EXPECT_EQ(predicted.step, simulated.step);
  EXPECT_EQ(predicted.step, kForkOnTwo);
  ASSERT_EQ(predicted.ops.size(), simulated.ops.size());
  for (std::size_t i = 0; i < simulated.ops.size(); ++i) {
    EXPECT_EQ(predicted.ops[i].start, simulated.ops[i].start);
    EXPECT_EQ(predicted.ops[i].finish, simulated.ops[i].finish);
  }
}

TEST(Contention, ops_without_such_times_stay_as_they_are) {
  GraphBuilder builder("mixed");
  builder.add({.name = "plain", .type = "compute", .time_us = {{"gpu", Decimal{80, 0}}}},
              {{.bytes = 4}});
  builder.add(op_of_times("measured", 80, 120), {{.bytes = 4}});
  const auto problem =
      compile_timed(std::make_shared<const Graph>(std::move(builder).build()), gpu_cluster(2));
  const Timeline timeline = predict(problem, {0, 1}, {});
  EXPECT_EQ(timeline.ops[0].finish, 80'000);
  EXPECT_GT(timeline.ops[1].finish, 105'000);
}

}  // namespace
}  // namespace emplace
