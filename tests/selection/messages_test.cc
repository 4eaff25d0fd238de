// Message passing bounds every feasible selection from below, in doubles and in integers.
#include "selection/messages.h"

#include <gtest/gtest.h>

#include "random_selection.h"
#include "selection/prices.h"
#include "selection/reduction.h"

namespace emplace {
namespace {

using testing::least_cost;
using testing::random_selection;

// Without reductions that would leave nothing to bound.
const ReductionOptions kFew{.dominance = false, .contraction = false, .peeling = false};

TEST(SelectionMessages, bounds_hold_after_every_step) {
  int bounded = 0;
  for (int seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const SelectionProblem problem = random_selection(
        {.edges = 2, .forbidden = 0.05 * static_cast<double>(seed % 4), .tightness = 0.2}, rng);
    const auto optimum = least_cost(problem);
    const Reduction reduction(problem, kFew);
    if (!optimum || reduction.problem().infeasible) continue;
    ++bounded;
    const CostTables tables(reduction.problem());
    PriceAscent ascent(tables);
    for (int step = 0; step < 40; ++step) {
      ascent.step();
      ASSERT_LE(ascent.last_bound(), static_cast<double>(*optimum) + 1e-6);
      ASSERT_LE(ascent.certified_bound(), *optimum);
      ASSERT_GE(static_cast<double>(ascent.certified_bound()), ascent.last_bound() - 1);
    }
  }
  EXPECT_GT(bounded, 50);
}

TEST(SelectionMessages, bounds_hold_at_any_prices) {
  for (int seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const SelectionProblem problem =
        random_selection({.edges = 2, .forbidden = 0.05, .tightness = 0.3}, rng);
    const auto optimum = least_cost(problem);
    const Reduction reduction(problem, kFew);
    if (!optimum || reduction.problem().infeasible) continue;
    const CostTables tables(reduction.problem());
    Messages messages(tables);
    for (int step = 0; step < 10; ++step) {
      std::vector<double> prices(tables.num_times());
      for (double& price : prices) price = rng.chance(0.5) ? 5 * rng.uniform() : 0;
      messages.set_prices(prices);
      ASSERT_LE(messages.pass(), static_cast<double>(*optimum) + 1e-6);
      ASSERT_LE(messages.certified_bound(), *optimum);
    }
  }
}

}  // namespace
}  // namespace emplace
