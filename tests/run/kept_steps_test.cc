#include "run/kept_steps.h"

#include <gtest/gtest.h>

namespace emplace {
namespace {

TEST(KeptSteps, are_all_of_a_short_run) {
  KeptSteps kept;
  EXPECT_TRUE(kept.empty());
  for (Nanoseconds i = 0; i < 50; ++i) kept.add({.step = i});
  ASSERT_EQ(kept.records().size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(kept.records()[i].step, static_cast<Nanoseconds>(i));
  }
}

TEST(KeptSteps, are_a_bounded_number_of_a_long_run_evenly_spread) {
  KeptSteps kept;
  for (Nanoseconds i = 0; i < 100'000; ++i) {
    kept.add({.step = i, .ops = {{i, i + 1}}});
    ASSERT_LE(kept.records().size(), KeptSteps::kMost);
  }
  const auto& records = kept.records();
  ASSERT_GE(records.size(), KeptSteps::kMost / 2);
  const Nanoseconds apart = records[1].step;
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].step, static_cast<Nanoseconds>(i) * apart);
    ASSERT_EQ(records[i].ops.size(), 1U);
    EXPECT_EQ(records[i].ops[0].start, records[i].step);
  }
  EXPECT_GE(records.back().step + apart, 100'000);
}

}  // namespace
}  // namespace emplace
