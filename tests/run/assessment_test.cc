#include "run/assessment.h"

#include <gtest/gtest.h>

#include "support/fork.h"

namespace emplace {
namespace {

const Placement kApart{0, 0, 1, 0};
const Placement kTogether{0, 0, 0, 0};

std::shared_ptr<const Simulator> simulator(Bytes memory = kUnlimited) {
  return std::make_shared<const Simulator>(fork_on(gpu_cluster(2, memory)));
}

TEST(Assessment, of_a_step_is_its_timeline_against_the_bound) {
  const Assessment apart = Assessor(simulator(), StepTime{}).assess(kApart, {});
  EXPECT_EQ(apart.time(), kForkOnTwo);
  EXPECT_FALSE(apart.throughput);
  EXPECT_EQ(apart.bound.step, kForkBound);
  EXPECT_NEAR(apart.ratio_to_bound(), 111.0 / 110, 1e-12);
  EXPECT_TRUE(apart.fits());
  EXPECT_FALSE(apart.optimal());
  EXPECT_EQ(apart.busy(0), 110'000);
  EXPECT_EQ(apart.busy(1), 100'000);
  EXPECT_EQ(apart.used(0), apart.timeline.devices[0].peak);
}

TEST(Assessment, is_optimal_when_it_meets_a_bound_that_a_search_proved) {
  const Assessor assessor(simulator(), StepTime{}, {kForkOnTwo, "a proof"});
  EXPECT_TRUE(assessor.assess(kApart, {}).optimal());
  EXPECT_EQ(assessor.assess(kApart, {}).ratio_to_bound(), 1);
  EXPECT_FALSE(assessor.assess(kTogether, {}).optimal());
}

// The bound of those that fit says nothing of it.
TEST(Assessment, of_what_does_not_fit_is_against_a_bound_of_all_placements) {
  const auto tight = simulator(2500);
  const Assessor assessor(tight, StepTime{}, {kForkOnOne + 1, "of what fits"});
  const Assessment together = assessor.assess(kTogether, {});
  ASSERT_GT(together.used(0), 2500);
  EXPECT_FALSE(together.fits());
  EXPECT_FALSE(together.optimal());
  EXPECT_LE(together.bound.step, together.time());
  EXPECT_NE(together.bound.reason, "of what fits");
}

TEST(Assessment, of_a_stream_is_its_period) {
  const Assessor full(simulator(), StreamPeriod{});
  const Assessment overlapped = full.assess(kApart, {});
  ASSERT_TRUE(overlapped.throughput);
  EXPECT_EQ(overlapped.time(), 110'000);
  EXPECT_EQ(overlapped.timeline.step, kForkOnTwo);
  const Assessment paying = Assessor(simulator(), StreamPeriod{Overlap::kNone}).assess(kApart, {});
  EXPECT_EQ(paying.busy(0), 111'000) << "with what it receives";
  EXPECT_EQ(paying.busy(1), 101'000) << "with what it sends";
  EXPECT_EQ(paying.used(0), paying.throughput->memory[0]);
}

TEST(Assessment, keeps_the_schedule) {
  const Schedule schedule{{1, 2, 3, 4}};
  EXPECT_EQ(Assessor(simulator(), StepTime{}).assess(kApart, schedule).schedule.priorities,
            schedule.priorities);
}

}  // namespace
}  // namespace emplace
