// Better answers that are handed in from outside while a search runs.
#include <gtest/gtest.h>

#include "placers/all.h"
#include "placers/local/chains.h"

#include "support/random_problem.h"

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
TEST_P(OutsideAnswers, are_never_lost) {
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

// Hands in a better answer in its first turn, and remembers what it is to go on from in the second.
class Listener final : public Chain {
 public:
  Listener(PlaceContext& context, const Solution& better) : context_(context), better_(better) {}

  void advance(const Turn& turn) override {
    context_.evaluator().count(turn.evaluations);
    if (turns_++ == 0) {
      context_.incumbent().offer(better_);
    } else {
      heard = turn.best->value;
    }
  }
  bool finished() const override { return turns_ >= 2; }
  const Solution* best() const override { return nullptr; }

  std::optional<Evaluation> heard;

 private:
  PlaceContext& context_;
  const Solution& better_;
  int turns_ = 0;
};

TEST(OutsideAnswer, is_what_chains_go_on_from) {
  const auto problem = medium_problem();
  const Solution worse = found_by(problem, "random", 10);
  const Solution better = found_by(problem, "auto", 20'000);
  ASSERT_LT(better.value, worse.value);
  PlaceContext context(problem);
  context.incumbent().offer(worse);
  std::vector<std::unique_ptr<Chain>> chains;
  chains.push_back(std::make_unique<Listener>(context, better));
  Budget budget;
  budget.evaluations = 100'000;
  run_chains(chains, context, budget);
  EXPECT_EQ(static_cast<const Listener&>(*chains.front()).heard, better.value);
}

INSTANTIATE_TEST_SUITE_P(Searches, OutsideAnswers,
                         testing::Values("auto", "hill_climb", "anneal", "lns", "mcmc"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace emplace
