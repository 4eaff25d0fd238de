// What a walker says of a move must be what the evaluator says of the placement after it, however
// the walker found out, and wherever accepted moves have led it.
#include "placers/local/walker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "support/random_problem.h"

namespace emplace {
namespace {

Placement placement_after(const Problem& problem, Placement placement,
                          std::span<const Move> moves) {
  for (const Move& move : moves) {
    for (const OpId op : problem.group_ops(move.group)) placement[op] = move.device;
  }
  return placement;
}

bool valid(const Problem& problem, const Placement& placement) {
  try {
    check_placement(problem, placement);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Walks at random and compares every try, in a random order or a scheduler's.
void walk(std::uint64_t seed, const Objective& objective, int tries,
          const std::string& scheduler = std::string(kOwnSchedule)) {
  Rng rng(seed);
  const auto problem = random_problem(rng);
  if (problem->num_devices() < 2) return;
  Evaluator evaluator(problem, objective);
  evaluator.order_by(scheduler);
  Evaluator plain(problem, objective);
  const Schedule schedule = random_schedule(*problem, rng);
  const auto value_of = [&](const Placement& placement) {
    const bool own = scheduler == kOwnSchedule;
    return plain.evaluate(placement,
                          own ? schedule : make_schedule(*problem, placement, scheduler));
  };
  const auto walker = Walker::make(evaluator);
  walker->start(random_placement(*problem, rng), schedule);
  for (int i = 0; i < tries; ++i) {
    std::vector<Move> moves;
    for (std::uint64_t count = 1 + rng.below(3); count > 0; --count) {
      const auto group = static_cast<GroupId>(rng.below(problem->num_groups()));
      moves.push_back({group, rng.pick(problem->allowed_devices(group))});
    }
    const Placement there = placement_after(*problem, walker->placement(), moves);
    if (!valid(*problem, there)) continue;
    const Evaluation expected = value_of(there);
    const std::string context =
        fmt::format("seed {} try {}\n{}", seed, i, describe(*problem, there, schedule));
    ASSERT_EQ(walker->try_moves(moves), expected) << context;
    const Evaluation cutoff = walker->value();
    const Evaluation limited = walker->try_moves(moves, cutoff);
    ASSERT_TRUE(expected < cutoff ? limited == expected : !(limited < cutoff)) << context;
    const Nanoseconds latest = walker->value().step;
    const Evaluation early = walker->try_before(moves, latest);
    ASSERT_TRUE(expected.step < latest ? early == expected : early.step >= latest) << context;
    if (rng.chance(0.3)) walker->accept(moves, expected);
    ASSERT_EQ(walker->value(), value_of(walker->placement())) << context;
  }
}

TEST(Walker, values_moves_of_a_step_exactly_while_it_walks) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    walk(seed, StepTime{}, 150);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Walker, values_moves_exactly_under_every_scheduler) {
  for (const SchedulerInfo& scheduler : schedulers()) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      walk(seed, StepTime{}, 150, scheduler.key);
      ASSERT_FALSE(HasFatalFailure()) << scheduler.key;
    }
  }
}

TEST(Walker, values_moves_of_a_stream_exactly_while_it_walks) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    walk(seed, StreamPeriod{seed % 2 == 0 ? Overlap::kNone : Overlap::kFull}, 60);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Walker, counts_what_it_evaluates) {
  Rng rng(7);
  const auto problem = random_problem(rng);
  Evaluator evaluator(problem);
  const auto walker = Walker::make(evaluator);
  walker->start(random_placement(*problem, rng), {});
  const std::int64_t before = evaluator.evaluations();
  const Move stay{0, walker->placement()[problem->group_ops(0)[0]]};
  for (int i = 0; i < 10; ++i) walker->try_moves({&stay, 1});
  EXPECT_EQ(evaluator.evaluations(), before + 10);
}

}  // namespace
}  // namespace emplace
