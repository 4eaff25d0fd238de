#include "learn/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "learn/general/shipped.h"

namespace emplace::learn {
namespace {

using ::testing::HasSubstr;

TEST(Backend, is_loaded_once) {
  EXPECT_EQ(&backend("one"), &backend("another"));
}

TEST(Backend, describes_the_shipped_policies) {
  for (const std::string& kind : general_kinds()) {
    const PolicyDescription policy =
        backend("this test").describe_policy(shipped_policy(kind), "shipped");
    EXPECT_EQ(policy.kind, kind);
    EXPECT_GT(policy.network.width, 0);
    EXPECT_THAT(policy.card, HasSubstr("policy: " + kind));
  }
}

TEST(Backend, names_the_file_that_is_no_policy) {
  try {
    backend("this test").describe_policy("nothing of the kind", "x.policy");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("x.policy"));
  }
}

TEST(Backend, knows_devices) {
  EXPECT_NO_THROW(backend("this test").require_device("cpu"));
  EXPECT_THROW(backend("this test").require_device("abacus"), Error);
}

TEST(MultiGraphSettings, can_be_written_as_options) {
  const MultiGraphSettings settings = MultiGraphSettings::schema().read(
      {{"policy", "mars"}, {"steps", "7"}, {"exercises_per_step", "3"}, {"width", "16"}});
  EXPECT_EQ(settings.kind, "mars");
  EXPECT_EQ(settings.steps, 7);
  EXPECT_EQ(settings.tasks_per_step, 3);
  EXPECT_EQ(settings.network.width, 16);
  EXPECT_EQ(settings.network.layers, GeneralNetwork{}.layers);
  EXPECT_THROW(MultiGraphSettings::schema().read({{"policy", "post"}}), Error);
}

}  // namespace
}  // namespace emplace::learn
