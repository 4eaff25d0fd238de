#include "placer/evaluator.h"

#include <gtest/gtest.h>

#include "support/fork.h"

namespace emplace {
namespace {

TEST(Evaluator, values_placements_by_what_it_is_told_to_measure_with) {
  Evaluator evaluator(fork_on(gpu_cluster(2)));
  EXPECT_FALSE(evaluator.measures());
  const Placement apart{0, 0, 1, 0};
  EXPECT_EQ(evaluator.evaluate(apart).step, kForkOnTwo);
  int calls = 0;
  bool ordered = false;
  evaluator.measure_with([&](const Placement& placement, const ReadyOrder& order) {
    ++calls;
    EXPECT_EQ(placement, apart);
    ordered = !order.fifo();
    return Evaluation{.step = 77 + calls, .overflow = 5};
  });
  EXPECT_TRUE(evaluator.measures());
  EXPECT_EQ(evaluator.evaluate(apart).step, 78);
  EXPECT_FALSE(ordered);
  const Schedule schedule{.priorities = {0, 1, 2, 3}};
  EXPECT_EQ(evaluator.evaluate(apart, schedule).step, 79);
  EXPECT_TRUE(ordered);
  EXPECT_EQ(evaluator.evaluate_exactly(apart, {}).overflow, 5);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(evaluator.evaluations(), 4);
}

TEST(Evaluator, has_peaks_and_starts_from_the_simulator_all_the_same) {
  Evaluator evaluator(fork_on(gpu_cluster(2)));
  const Placement apart{0, 0, 1, 0};
  std::vector<Bytes> simulated;
  evaluator.evaluate(apart, {}, simulated);
  std::vector<Nanoseconds> simulated_starts;
  evaluator.evaluate_uncounted(apart, simulated_starts);
  evaluator.measure_with(
      [](const Placement&, const ReadyOrder&) { return Evaluation{.step = 7, .overflow = 0}; });
  std::vector<Bytes> peaks;
  EXPECT_EQ(evaluator.evaluate(apart, {}, peaks).step, 7);
  EXPECT_EQ(peaks, simulated);
  std::vector<Nanoseconds> starts;
  EXPECT_EQ(evaluator.evaluate_uncounted(apart, starts).step, 7);
  EXPECT_EQ(starts, simulated_starts);
}

}  // namespace
}  // namespace emplace
