// docs/simulator.md, "Throughput": against the reference on random problems, and by hand.
#include "sim/throughput.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "support/random_problem.h"
#include "support/reference_simulator.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

TEST(Throughput, equals_the_reference_on_random_problems) {
  int differ = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Rng rng = Rng(99).split(i);
    const auto problem = random_problem(rng, {.max_ops = 1 + i / 75});
    const Placement placement = random_placement(*problem, rng);
    const reference::Throughput expected =
        reference::stream(problem->graph(), problem->cluster(), placement);
    const ThroughputResult full = throughput(*problem, placement, Overlap::kFull);
    const ThroughputResult none = throughput(*problem, placement, Overlap::kNone);
    const std::string text = describe(*problem, placement, {});
    ASSERT_EQ(full.period, expected.period_full) << text;
    ASSERT_EQ(none.period, expected.period_none) << text;
    ASSERT_EQ(full.device_loads, expected.device_loads) << text;
    ASSERT_EQ(none.device_loads, expected.device_sums) << text;
    ASSERT_EQ(full.channel_loads, expected.channel_loads) << text;
    ASSERT_EQ(none.channel_loads, expected.channel_loads) << text;
    ASSERT_EQ(full.memory, expected.memory) << text;
    ASSERT_EQ(none.memory, expected.memory) << text;
    differ += full.period != none.period ? 1 : 0;
  }
  EXPECT_GT(differ, 300);  // or the two modes would not be told apart
}

// x, then four ops of 100 us in a row; a tensor takes 11 us.
TEST(Throughput, is_the_largest_stage_of_a_pipeline_when_communication_overlaps) {
  const Problem& problem = *tiny_case("chain_on_two_equal").problem;
  const ThroughputResult result = throughput(problem, {0, 0, 0, 1, 1}, Overlap::kFull);
  EXPECT_EQ(result.period, 200'000);
  EXPECT_EQ(result.device_loads, (std::vector<Nanoseconds>{200'000, 200'000}));
  EXPECT_EQ(result.channel_loads, (std::vector<Nanoseconds>{11'000, 0}));
}

TEST(Throughput, charges_both_ends_of_a_transfer_when_nothing_overlaps) {
  const Problem& problem = *tiny_case("chain_on_two_equal").problem;
  EXPECT_EQ(throughput(problem, {0, 0, 0, 1, 1}, Overlap::kNone).period, 211'000);
  EXPECT_EQ(throughput(problem, {0, 0, 1, 0, 1}, Overlap::kNone).period, 233'000);
}

TEST(Throughput, charges_a_sender_once_for_a_tensor_that_goes_to_many) {
  // Two transfers of fork's tensor leave gpu1; the results of b0 and b1 come back to join.
  const Problem& problem = *tiny_case("fork_join_on_three_unequal").problem;
  const Placement placement{1, 0, 2, 1, 1, 1, 1, 1, 1, 1};
  const ThroughputResult full = throughput(problem, placement, Overlap::kFull);
  const ThroughputResult none = throughput(problem, placement, Overlap::kNone);
  const Nanoseconds sent = problem.transfer_time(0, 1, 0);
  EXPECT_EQ(sent, problem.transfer_time(0, 1, 2));
  EXPECT_EQ(none.device_loads[1], full.device_loads[1] + sent + problem.transfer_time(1, 0, 1) +
                                      problem.transfer_time(2, 2, 1));
  // cpu0 is free of communication; gpu0 receives and sends one tensor.
  EXPECT_EQ(none.device_loads[2], full.device_loads[2]);
  EXPECT_EQ(none.device_loads[0], full.device_loads[0] + sent + problem.transfer_time(1, 0, 1));
}

TEST(Throughput, holds_everything_at_once) {
  const Problem& problem = *tiny_case("view_chain_on_one_device").problem;
  // x, a, b, c: 100,000 bytes each; the two views take nothing.
  EXPECT_EQ(throughput(problem, Placement(problem.num_ops(), 0), Overlap::kFull).memory,
            (std::vector<Bytes>{400'000}));
}

}  // namespace
}  // namespace emplace
