#include "run/least_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> beyond(const char* placer, OpId ops, double seconds) {
  Budget budget;
  budget.seconds = seconds;
  return runs_beyond_time({{.placer = {placer, {}}}}, ops, budget);
}

TEST(LeastTime, is_said_of_placers_that_cannot_keep_to_less) {
  EXPECT_THAT(beyond("dp", 1'000'000, 1),
              ElementsAre(AllOf(HasSubstr("dp takes about 7 s on 1,000,000 ops"),
                                HasSubstr("longer than the 1 s it has"))));
  EXPECT_THAT(beyond("dp", 100'000, 1), IsEmpty());
  EXPECT_THAT(beyond("dp", 1'000'000, 10), IsEmpty());
  EXPECT_THAT(beyond("gdp", 10'000'000, 1), IsEmpty()) << "which gives up in time";
}

}  // namespace
}  // namespace emplace
