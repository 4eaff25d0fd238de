// Starts of ops that come with an evaluation are those of the timeline, and cost it nothing.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

#include "sim/simulator.h"

#include "placer/evaluator.h"

#include "support/random_problem.h"

namespace emplace {
namespace {

constexpr int kProblems = 300;
constexpr int kPlacements = 4;  // one workspace and one vector of starts for all of a problem's

std::vector<Nanoseconds> starts_of(const Timeline& timeline) {
  std::vector<Nanoseconds> starts;
  for (const OpSpan& op : timeline.ops) starts.push_back(op.start);
  return starts;
}

TEST(EvaluateWithStarts, simulator_gives_the_value_and_the_starts_of_the_timeline) {
  Rng rng(71);
  for (int i = 0; i < kProblems; ++i) {
    const auto problem = random_problem(rng);
    const Simulator simulator(problem);
    const auto workspace = simulator.make_workspace();
    const auto fresh = simulator.make_workspace();
    std::vector<Nanoseconds> starts(problem->num_ops());
    for (int j = 0; j < kPlacements; ++j) {
      const Placement placement = random_placement(*problem, rng);
      const Schedule schedule = random_schedule(*problem, rng);
      const ReadyOrder order(*problem, schedule);
      const Evaluation value = simulator.evaluate_with_starts(placement, order, *workspace, starts);
      ASSERT_EQ(value, simulator.evaluate(placement, order, *fresh))
          << describe(*problem, placement, schedule);
      ASSERT_EQ(starts, starts_of(simulator.run(placement, schedule)))
          << describe(*problem, placement, schedule);
    }
  }
}

// In FIFO order, under both objectives: starts are those of one step, whatever is asked for.
TEST(EvaluateWithStarts, evaluator_gives_its_own_value_and_the_starts_of_the_timeline) {
  Rng rng(72);
  for (int i = 0; i < kProblems; ++i) {
    const auto problem = random_problem(rng);
    const auto simulator = std::make_shared<const Simulator>(problem);
    for (const Objective& objective : {Objective{}, Objective{StreamPeriod{}}}) {
      Evaluator evaluator(simulator, objective);
      std::vector<Nanoseconds> starts;
      for (int j = 0; j < kPlacements; ++j) {
        const Placement placement = random_placement(*problem, rng);
        const Evaluation value = evaluator.evaluate_uncounted(placement, starts);
        ASSERT_EQ(evaluator.evaluations(), j);
        ASSERT_EQ(value, evaluator.evaluate(placement)) << describe(*problem, placement, {});
        ASSERT_EQ(starts, starts_of(simulator->run(placement, {})))
            << describe(*problem, placement, {});
      }
    }
  }
}

}  // namespace
}  // namespace emplace
