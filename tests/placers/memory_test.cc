#include "placer/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MemoryModel, needs_add_up_to_the_peak_of_everything_on_one_device) {
  Rng rng(5);
  int shared = 0;
  for (int i = 0; i < 200; ++i) {
    const auto problem = random_problem(rng);
    DeviceId device = 0;
    const auto may_hold_all = [&](DeviceId candidate) {
      for (GroupId group = 0; group < problem->num_groups(); ++group) {
        if (!problem->allowed(group, candidate)) return false;
      }
      return true;
    };
    while (device < problem->num_devices() && !may_hold_all(device)) ++device;
    if (device == problem->num_devices()) continue;
    ++shared;
    Evaluator evaluator(problem);
    const MemoryModel model(*problem, evaluator);
    Bytes sum = 0;
    for (GroupId group = 0; group < problem->num_groups(); ++group) {
      EXPECT_GE(model.need(group), problem->group_resident_bytes(group));
      sum += model.need(group);
    }
    std::vector<Bytes> peaks;
    evaluator.evaluate(Placement(problem->num_ops(), device), ReadyOrder(), peaks);
    EXPECT_EQ(sum, peaks[device]);
  }
  EXPECT_GT(shared, 20);
}

TEST(MemoryModel, calibrates_on_one_device_when_an_op_is_pinned_to_another) {
  TimedGraph graph;
  TensorId last = graph.op("op0", 1, {}, 100);
  for (int i = 1; i < 10; ++i) last = graph.op("op" + std::to_string(i), 1, {last}, 100);
  graph.add({.name = "here", .type = "compute", .inputs = {last}, .devices = {"gpu0"}}, 1, 100);
  graph.add({.name = "there", .type = "compute", .inputs = {last}, .devices = {"gpu1"}}, 1, 100);
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  Evaluator evaluator(problem);
  const MemoryModel model(*problem, evaluator);
  Bytes sum = 0;
  for (GroupId group = 0; group < problem->num_groups(); ++group) sum += model.need(group);
  EXPECT_LT(sum, 300);  // at most two or three of the twelve tensors live at once
}

TEST(MemoryLedger, roomiest_is_the_allowed_device_with_most_left) {
  TimedGraph graph;
  graph.add({.name = "a", .type = "compute", .persistent_bytes = 60}, 1, 0);
  graph.add({.name = "b", .type = "compute", .devices = {"gpu0", "gpu1"}}, 1, 0);
  ClusterSpec spec = gpu_cluster(3, 100);
  spec.devices[1].memory = 80;
  const auto problem = compile_timed(graph.build(), spec);
  Evaluator evaluator(problem);
  const MemoryModel model(*problem, evaluator);
  MemoryLedger ledger(*problem, model, 1);
  EXPECT_EQ(ledger.roomiest(*problem, 1), 0);
  ledger.add(0, 0);
  EXPECT_EQ(ledger.left(0), 40);
  EXPECT_FALSE(ledger.fits(0, 0));
  EXPECT_TRUE(ledger.fits(0, 1));
  EXPECT_EQ(ledger.roomiest(*problem, 1), 1);
  EXPECT_EQ(ledger.roomiest(*problem, 0), 2);
}

TEST(MemoryLedger, share_shrinks_capacities_but_not_unlimited_ones) {
  TimedGraph graph;
  graph.op("a", 1, {});
  ClusterSpec spec = gpu_cluster(2, 100);
  spec.devices[1].memory = kUnlimited;
  const auto problem = compile_timed(graph.build(), spec);
  Evaluator evaluator(problem);
  const MemoryModel model(*problem, evaluator);
  EXPECT_EQ(MemoryLedger(*problem, model, 0.5).capacity(0), 50);
  EXPECT_EQ(MemoryLedger(*problem, model, 0.5).capacity(1), kUnlimited);
}

// Four ops that hold 40 bytes each; three together are too many for a device of 100.
std::shared_ptr<const Problem> four_holders(Bytes memory) {
  TimedGraph graph;
  for (int i = 0; i < 4; ++i) {
    graph.add({.name = "op" + std::to_string(i), .type = "compute", .persistent_bytes = 40}, 1, 0);
  }
  return compile_timed(graph.build(), gpu_cluster(2, memory));
}

TEST(FitMemory, returns_the_first_result_that_fits_without_a_note) {
  const auto problem = four_holders(1000);
  Evaluator evaluator(problem);
  int calls = 0;
  const PlaceResult result = fit_memory(*problem, evaluator, Budget{}, [&](MemoryLedger& ledger) {
    ++calls;
    EXPECT_EQ(ledger.capacity(0), 1000);
    return PlaceResult{.placement = {0, 0, 0, 0}};
  });
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(FitMemory, offers_less_until_the_result_fits) {
  const auto problem = four_holders(100);
  Evaluator evaluator(problem);
  // Believes that an op needs 25 bytes, and so overfills gpu0 until it is offered less than 75.
  const PlaceResult result = fit_memory(*problem, evaluator, Budget{}, [&](MemoryLedger& ledger) {
    const auto on_first = static_cast<std::size_t>(ledger.capacity(0) / 25);
    Placement placement(4, 1);
    std::fill_n(placement.begin(), std::min<std::size_t>(on_first, 4), DeviceId{0});
    return PlaceResult{.placement = placement};
  });
  EXPECT_THAT(result.placement, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(FitMemory, returns_the_least_overfull_result_and_says_what_is_short) {
  const auto problem = four_holders(70);
  Evaluator evaluator(problem);
  int calls = 0;
  const PlaceResult result = fit_memory(*problem, evaluator, Budget{}, [&](MemoryLedger&) {
    // The second try is the best one.
    return ++calls == 2 ? PlaceResult{.placement = {0, 0, 1, 1}}
                        : PlaceResult{.placement = {0, 0, 0, 0}};
  });
  EXPECT_GT(calls, 2);
  EXPECT_THAT(result.placement, ElementsAre(0, 0, 1, 1));
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_THAT(result.notes[0], HasSubstr("gpu0 needs 80 B of its 70 B, gpu1 needs 80 B"));
}

TEST(FitMemory, stops_trying_when_the_budget_is_spent) {
  const auto problem = four_holders(70);
  Evaluator evaluator(problem);
  int calls = 0;
  Budget budget;
  budget.evaluations = 1;
  fit_memory(*problem, evaluator, budget, [&](MemoryLedger&) {
    ++calls;
    return PlaceResult{.placement = {0, 0, 0, 0}};
  });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace emplace
