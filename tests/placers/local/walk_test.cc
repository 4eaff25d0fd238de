#include "placers/local/walk.h"

#include <algorithm>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "placers/local/subproblem.h"

#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

// Eight parameters of which a device holds two.
std::shared_ptr<const Problem> eight_parameters_on_four() {
  TimedGraph graph;
  for (int i = 0; i < 8; ++i) {
    const std::string name = std::to_string(i);
    const TensorId parameter = graph.parameter("p" + name, 1'000'000);
    graph.update("u" + name, 10, {parameter});
  }
  return compile_timed(graph.build(), gpu_cluster(4, 2'100'000));
}

class Walking : public testing::Test {
 protected:
  Turn turn(std::int64_t evaluations) const {
    return {.evaluations = evaluations, .progress = 0, .best = nullptr, .clock = &forever_};
  }

  Budget forever_;
};

TEST_F(Walking, comes_to_fit_from_where_it_does_not) {
  const auto problem = eight_parameters_on_four();
  const CoarseGraph graph = build_coarse_graph(*problem);
  Evaluator evaluator(problem);
  Walk walk(evaluator, graph, "walk", Rng(1));
  walk.begin(turn(1000));
  walk.go_to({.placement = Placement(problem->num_ops(), 0)});
  ASSERT_FALSE(walk.value().fits());
  while (walk.more() && !walk.value().fits()) walk.step(0);
  EXPECT_TRUE(walk.value().fits());
  EXPECT_EQ(walk.value(), evaluator.evaluate(walk.placement(), walk.schedule()));
}

TEST_F(Walking, knows_its_best_place_and_counts_what_it_evaluates) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    Rng rng = Rng(31).split(i);
    const auto problem = random_problem(rng, {.max_ops = 30});
    const CoarseGraph graph = build_coarse_graph(*problem);
    const Objective objective = i % 2 == 0 ? Objective(StepTime{}) : Objective(StreamPeriod{});
    Evaluator evaluator(problem, objective);
    Walk walk(evaluator, graph, "walk", rng.split(1));
    walk.begin(turn(150));
    walk.go_to({random_placement(*problem, rng), random_schedule(*problem, rng)});
    Evaluation best = walk.value();
    while (walk.more()) {
      const Evaluation before = walk.value();
      const bool hot = walk.rng().chance(0.5);
      const bool made = walk.step(hot ? static_cast<double>(before.step) : 0);
      EXPECT_TRUE(made || walk.value() == before);
      if (!hot) {
        EXPECT_FALSE(before < walk.value());
      }
      best = std::min(best, walk.value());
      if (walk.rng().chance(0.05)) walk.kick();
      best = std::min(best, walk.value());
      if (walk.rng().chance(0.05)) walk.reorder();
      best = std::min(best, walk.value());
    }
    EXPECT_EQ(evaluator.evaluations(), walk.spent());
    EXPECT_EQ(walk.best().value, best);
    EXPECT_EQ(best, evaluator.evaluate(walk.best().placement, walk.best().schedule));
    EXPECT_EQ(walk.value(), evaluator.evaluate(walk.placement(), walk.schedule()));
    check_placement(*problem, walk.placement());
  }
}

TEST_F(Walking, leaves_no_place_that_fits_for_one_that_does_not_however_hot) {
  const auto problem = eight_parameters_on_four();
  const CoarseGraph graph = build_coarse_graph(*problem);
  Evaluator evaluator(problem);
  Walk walk(evaluator, graph, "walk", Rng(2));
  std::vector<DeviceId> spread;
  for (GroupId group = 0; group < problem->num_groups(); ++group) {
    spread.push_back(static_cast<DeviceId>(group / 2));
  }
  walk.begin(turn(500));
  walk.go_to({.placement = expand_groups(*problem, spread)});
  int moved = 0;
  while (walk.more()) {
    moved += walk.step(1e15) ? 1 : 0;
    ASSERT_TRUE(walk.value().fits());
  }
  EXPECT_GT(moved, 0);
}

struct Freed {
  std::vector<std::vector<GroupId>> groups;
  std::vector<Subproblem::Unit> units;
};

// Some groups of a problem, two to a unit, free to go anywhere that they may.
Freed free_some(const Problem& problem, const Placement& placement, Rng& rng) {
  Freed freed;
  std::vector<GroupId> groups(problem.num_groups());
  for (GroupId group = 0; group < problem.num_groups(); ++group) groups[group] = group;
  rng.shuffle(groups);
  for (std::size_t i = 0; i + 1 < groups.size() && freed.groups.size() < 3; i += 2) {
    freed.groups.push_back({groups[i], groups[i + 1]});
  }
  for (const auto& unit : freed.groups) {
    std::vector<DeviceId> devices;
    for (DeviceId device = 0; device < problem.num_devices(); ++device) {
      const bool moves = std::any_of(unit.begin(), unit.end(), [&](GroupId group) {
        return placement[problem.group_ops(group)[0]] != device && problem.allowed(group, device);
      });
      if (moves) devices.push_back(device);
    }
    freed.units.push_back({unit, devices});
  }
  return freed;
}

constexpr Evaluation kWorst{std::numeric_limits<Nanoseconds>::max(),
                            std::numeric_limits<Bytes>::max()};

TEST(SubproblemTest, tries_every_assignment_but_the_present_one_once) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    Rng rng = Rng(41).split(i);
    const auto problem = random_problem(rng, {.max_ops = 20, .max_devices = 4});
    const Placement placement = random_placement(*problem, rng);
    const Freed freed = free_some(*problem, placement, rng);
    Subproblem subproblem(*problem, placement, freed.units);
    std::size_t count = 0;
    std::vector<Move> moves;
    while (subproblem.next(kWorst)) {
      ++count;
      subproblem.moves(moves);
      EXPECT_FALSE(moves.empty());
      for (const Move& move : moves) EXPECT_TRUE(problem->allowed(move.group, move.device));
    }
    EXPECT_FALSE(subproblem.next(kWorst));
    std::size_t assignments = 1;
    for (const auto& unit : freed.units) assignments *= 1 + unit.devices.size();
    EXPECT_EQ(count, assignments - 1);
  }
}

Placement moved(const Problem& problem, Placement placement, const std::vector<Move>& moves) {
  for (const Move& move : moves) {
    for (const OpId op : problem.group_ops(move.group)) placement[op] = move.device;
  }
  return placement;
}

bool has_all_links(const Problem& problem, const Placement& placement) {
  try {
    check_placement(problem, placement);
    return true;
  } catch (const Error&) {
    return false;
  }
}

struct Solved {
  Evaluation best;
  std::size_t tried = 0;
};

Solved solve(Evaluator& evaluator, const Placement& placement, const Freed& freed, bool bounded) {
  const Problem& problem = evaluator.problem();
  Solved solved{.best = evaluator.evaluate(placement)};
  Subproblem subproblem(problem, placement, freed.units);
  std::vector<Move> moves;
  while (subproblem.next(bounded ? solved.best : kWorst)) {
    subproblem.moves(moves);
    const Placement after = moved(problem, placement, moves);
    if (!has_all_links(problem, after)) continue;
    ++solved.tried;
    solved.best = std::min(solved.best, evaluator.evaluate(after));
  }
  return solved;
}

TEST(SubproblemTest, cuts_off_nothing_that_is_better) {
  std::size_t tried_all = 0;
  std::size_t tried_bounded = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Rng rng = Rng(42).split(i);
    const auto problem = random_problem(rng, {.max_ops = 20, .max_devices = 4});
    const Objective objective = i % 2 == 0 ? Objective(StepTime{}) : Objective(StreamPeriod{});
    Evaluator evaluator(problem, objective);
    const Placement placement = random_placement(*problem, rng);
    const Freed freed = free_some(*problem, placement, rng);
    const Solved all = solve(evaluator, placement, freed, false);
    const Solved bounded = solve(evaluator, placement, freed, true);
    EXPECT_EQ(all.best, bounded.best) << i;
    tried_all += all.tried;
    tried_bounded += bounded.tried;
  }
  EXPECT_LT(tried_bounded * 10, tried_all * 9) << "the bound cuts off too little";
}

}  // namespace
}  // namespace emplace
