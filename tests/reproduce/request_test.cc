// What is asked for on the command line of bench/reproduce.
#include "reproduce/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace emplace::bench {
namespace {

using ::testing::HasSubstr;

TEST(ProgramRequest, is_of_the_claims_and_tables_that_are_named) {
  const Program program = program_of({.keys = {"A3", "Mars's table"}, .versions = {"paper"}});
  ASSERT_EQ(program.size(), 1U);
  ASSERT_EQ(program[0].claims.size(), 1U);
  EXPECT_EQ(program[0].claims[0].key, "A3");
  ASSERT_EQ(program[0].grids.size(), 1U);
  EXPECT_EQ(program_of({}).size(), 2U);
  // In one of the versions.
  EXPECT_EQ(program_of({.keys = {"A8"}}).size(), 1U);
}

TEST(ProgramRequest, names_what_there_is_none_of_beside_what_there_is) {
  const auto error = [](const std::vector<std::string>& keys) {
    return error_text([&] { program_of({.keys = keys}); });
  };
  EXPECT_THAT(error({"A3", "A77"}), HasSubstr("there is no 'A77'"));
  EXPECT_THAT(error({"A77"}), HasSubstr("expected some of: A1, "));
}

TEST(ProgramRequest, is_run_on_workloads_that_it_has) {
  const ProgramRequest request{.keys = {"A3"}, .runs_on = {"Post: ResNet, 2 GPUs"}};
  const Entrants entrants = entrants_of(program_of(request));
  check_workloads(request, entrants);
  const std::vector<Job> jobs = jobs_now(request, missing_jobs(entrants, 1, {}, RunStore("")));
  ASSERT_FALSE(jobs.empty());
  for (const Job& job : jobs) EXPECT_EQ(job.workload, "Post: ResNet, 2 GPUs");
  const auto error = [&](const std::string& name) {
    return error_text([&] { check_workloads({.runs_on = {name}}, entrants); });
  };
  EXPECT_THAT(error("Post: Resnet, 2 GPUs"), HasSubstr("runs on 'Post: Resnet, 2 GPUs'"));
  EXPECT_THAT(error("Mars: BERT"), HasSubstr("Post: ResNet, 2 GPUs")) << "another claim's";
}

}  // namespace
}  // namespace emplace::bench
