#include "learn/general/overflow_descent.h"

#include <numeric>

#include <gtest/gtest.h>

#include "learn/general/memory_repair.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

constexpr int kCells = 4;
constexpr int kUnrolled = 6;

// Cells of a parameter of 10 kB each, which every step reads.
std::shared_ptr<const Problem> unrolled_cells(int devices, Bytes memory) {
  TimedGraph graph;
  std::vector<TensorId> parameters;
  for (int cell = 0; cell < kCells; ++cell) {
    parameters.push_back(graph.parameter("cell" + std::to_string(cell) + ".weight", 10'000));
  }
  TensorId last = graph.op("first", 1, {}, 10);
  for (int step = 0; step < kUnrolled; ++step) {
    for (int cell = 0; cell < kCells; ++cell) {
      const std::string name = "cell" + std::to_string(cell) + ".step" + std::to_string(step);
      last = graph.op(name, 10, {last, parameters[cell]}, 10);
    }
  }
  return compile_timed(graph.build(), gpu_cluster(devices, memory));
}

// The first steps of all cells on one device, the others on another.
Placement by_steps(const Problem& problem) {
  Placement placement(problem.num_ops(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const std::string name(problem.graph().op_name(op));
    const std::size_t at = name.find("step");
    if (at != std::string::npos && name[at + 4] >= '3') placement[op] = 1;
  }
  return placement;
}

struct Descended {
  Solution best;
  std::int64_t evaluations;
};

template <class Mend>
Descended mended(const std::shared_ptr<const Problem>& problem, const Mend& mend,
                 Budget budget = {}) {
  PlaceContext context(problem);
  Environment environment(context, budget, "test");
  mend(environment);
  return {context.incumbent().best().value_or(Solution{}), context.evaluations()};
}

Descended descend(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                  std::int64_t evaluations = 300, Budget budget = {}) {
  std::vector<DeviceId> all(problem->num_devices());
  std::iota(all.begin(), all.end(), DeviceId{0});
  return mended(
      problem,
      [&](Environment& environment) {
        OverflowDescent{*problem}(placement, all, evaluations, environment, Rng(1));
      },
      budget);
}

// Both devices hold all parameters, one of them as copies: no step that moves alone frees anything.
TEST(OverflowDescent, gathers_what_shares_parameters) {
  const auto problem = unrolled_cells(2, 31'000);
  const Placement placement = by_steps(*problem);
  const std::vector<DeviceId> both{0, 1};
  const Descended repaired = mended(problem, [&](Environment& environment) {
    MemoryRepair{*problem}(placement, both, 16, environment);
  });
  ASSERT_FALSE(repaired.best.value.fits()) << "then it is not needed here";
  const Descended descended = descend(problem, placement);
  check_placement(*problem, descended.best.placement);
  EXPECT_TRUE(descended.best.value.fits());
  EXPECT_EQ(descended.best.value, Evaluator(problem).evaluate(descended.best.placement));
}

TEST(OverflowDescent, leaves_a_placement_that_fits_alone) {
  const auto problem = unrolled_cells(2, 50'000);
  const Descended descended = descend(problem, by_steps(*problem));
  EXPECT_EQ(descended.best.placement, by_steps(*problem));
  EXPECT_EQ(descended.evaluations, 1);
}

TEST(OverflowDescent, gives_up_where_nothing_fits) {
  const auto problem = unrolled_cells(2, 15'000);
  const Descended descended = descend(problem, by_steps(*problem), 60);
  EXPECT_FALSE(descended.best.value.fits());
  EXPECT_LE(descended.evaluations, 60);
}

TEST(OverflowDescent, obeys_the_budget) {
  const auto problem = unrolled_cells(2, 31'000);
  Budget budget;
  budget.evaluations = 5;
  EXPECT_LE(descend(problem, by_steps(*problem), 300, budget).evaluations, 5);
}

}  // namespace
}  // namespace emplace::learn
