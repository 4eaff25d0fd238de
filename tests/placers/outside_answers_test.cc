// Better answers that are handed in from outside while a search runs.
#include <gtest/gtest.h>

#include "support/random_problem.h"

#include "placers/all.h"

namespace emplace {
namespace {

std::shared_ptr<const Problem> medium_problem() {
  Rng rng(7);
  return random_problem(rng, {.max_ops = 60, .max_devices = 4});
}

Solution found_by(const std::shared_ptr<const Problem>& problem, const char* key,
                  std::int64_t evaluations) {
  PlaceContext context(problem);
  Budget budget;
  budget.evaluations = evaluations;
  PlaceResult result = all_placers().make({key, {}})->place(context, budget, Rng(1));
  Solution solution{std::move(result.placement), std::move(result.schedule), {}, "outside"};
  solution.value = context.evaluator().evaluate(solution.placement, solution.schedule);
  return solution;
}

class OutsideAnswers : public testing::TestWithParam<const char*> {};

// The search is given one better answer as soon as it has one of its own, and ends no worse.
TEST_P(OutsideAnswers, are_taken_up) {
  const auto problem = medium_problem();
  const Solution better = found_by(problem, "auto", 20'000);
  PlaceContext context(problem);
  bool handed_in = false;
  const auto hearing = context.incumbent().listen([&](const Incumbent& incumbent) {
    if (handed_in || !incumbent.value()) return;
    handed_in = true;
    context.incumbent().offer(better);
  });
  Budget budget;
  budget.evaluations = 300;
  const PlaceResult result = all_placers().make({GetParam(), {}})->place(context, budget, Rng(2));
  ASSERT_TRUE(handed_in);
  const Evaluation value = context.evaluator().evaluate(result.placement, result.schedule);
  EXPECT_FALSE(better.value < value);
}

INSTANTIATE_TEST_SUITE_P(Searches, OutsideAnswers,
                         testing::Values("auto", "hill_climb", "anneal", "lns", "mcmc"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace emplace
