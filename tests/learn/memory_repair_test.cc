#include "learn/general/memory_repair.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

constexpr int kOps = 8;

// Each op reads a parameter of 10 kB: all of them need 80 kB and a little.
std::shared_ptr<const Problem> chain_of_parameters(int devices, Bytes memory,
                                                   const std::vector<std::string>& allowed = {}) {
  TimedGraph graph;
  std::vector<TensorId> inputs;
  for (int i = 0; i < kOps; ++i) {
    const std::string number = std::to_string(i);
    inputs.push_back(graph.parameter("p" + number, 10'000));
    inputs = {graph.add(
        {.name = "op" + number, .type = "compute", .inputs = inputs, .devices = allowed}, 10, 100)};
  }
  return compile_timed(graph.build(), gpu_cluster(devices, memory));
}

struct Repaired {
  Solution best;
  std::int64_t evaluations;
};

Repaired repair(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                const std::vector<DeviceId>& used, int tries = 16, Budget budget = {}) {
  PlaceContext context(problem);
  Environment environment(context, budget, "test");
  MemoryRepair{*problem}(placement, used, tries, environment);
  return {context.incumbent().best().value_or(Solution{}), context.evaluations()};
}

std::size_t num_on(const Placement& placement, DeviceId device) {
  return static_cast<std::size_t>(std::count(placement.begin(), placement.end(), device));
}

TEST(MemoryRepair, makes_a_placement_fit) {
  const auto problem = chain_of_parameters(3, 40'000);
  const Placement crowded(problem->num_ops(), 0);
  ASSERT_FALSE(Evaluator(problem).evaluate(crowded).fits());
  const Repaired repaired = repair(problem, crowded, {0, 1, 2});
  check_placement(*problem, repaired.best.placement);
  EXPECT_TRUE(repaired.best.value.fits());
  EXPECT_EQ(repaired.best.value, Evaluator(problem).evaluate(repaired.best.placement));
}

TEST(MemoryRepair, moves_to_no_device_that_is_not_used) {
  const auto problem = chain_of_parameters(4, 60'000);
  const Repaired repaired = repair(problem, Placement(problem->num_ops(), 0), {0, 2});
  EXPECT_TRUE(repaired.best.value.fits());
  EXPECT_EQ(num_on(repaired.best.placement, 1), 0U);
  EXPECT_EQ(num_on(repaired.best.placement, 3), 0U);
  EXPECT_GT(num_on(repaired.best.placement, 2), 0U);
}

TEST(MemoryRepair, leaves_a_placement_that_fits_alone) {
  const auto problem = chain_of_parameters(2, 100'000);
  const Placement placement(problem->num_ops(), 1);
  const Repaired repaired = repair(problem, placement, {0, 1});
  EXPECT_EQ(repaired.best.placement, placement);
  EXPECT_EQ(repaired.evaluations, 1);
}

TEST(MemoryRepair, gives_up_where_nothing_can_move) {
  const auto problem = chain_of_parameters(2, 60'000);
  const Placement placement(problem->num_ops(), 0);
  const Repaired alone = repair(problem, placement, {0});
  EXPECT_EQ(alone.best.placement, placement);
  EXPECT_LE(alone.evaluations, 2);

  const auto nowhere = chain_of_parameters(2, 20'000);  // too small for what all ops need
  const Repaired tried = repair(nowhere, placement, {0, 1}, 3);
  EXPECT_FALSE(tried.best.value.fits());
  EXPECT_LE(tried.evaluations, 8);
}

TEST(MemoryRepair, moves_only_what_may_be_elsewhere) {
  const auto problem = chain_of_parameters(2, 60'000, {"gpu0"});
  const Repaired repaired = repair(problem, Placement(problem->num_ops(), 0), {0, 1});
  check_placement(*problem, repaired.best.placement);
}

TEST(MemoryRepair, obeys_the_budget) {
  const auto problem = chain_of_parameters(3, 40'000);
  Budget budget;
  budget.evaluations = 1;
  EXPECT_LE(repair(problem, Placement(problem->num_ops(), 0), {0, 1, 2}, 16, budget).evaluations,
            1);
}

}  // namespace
}  // namespace emplace::learn
