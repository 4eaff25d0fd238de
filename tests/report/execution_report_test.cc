#include "report/execution_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/simulator.h"

#include "report/measured_report.h"
#include "support/fork.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The fork on two devices: predicted 111 us, measured 125.
Execution some_execution() {
  Execution execution;
  execution.problem = fork_on(gpu_cluster(2));
  execution.placement = {0, 0, 1, 0};
  execution.predicted = Simulator(execution.problem).run(execution.placement, {});
  execution.measured = execution.predicted;
  execution.measured.step = 125'000;
  execution.measurement.steps = {120'000, 125'000, 130'000};
  execution.measurement.losses = {2.5, 2.25, 2.125};
  execution.measurement.memory = {{.peak = 2'000'000, .cached = 500'000}, {.peak = 0}};
  execution.oracle = 120'000;
  execution.drift = 0.96;
  execution.types = {{"mm", 2, 190'000, 200'000}, {"add", 1, 20'000, 10'000}};
  execution.warnings = {"devices share a core"};
  return execution;
}

TEST(ExecutionReport, tells_people_what_was_measured_beside_what_was_predicted) {
  const std::string text = to_text(some_execution());
  EXPECT_THAT(text, AllOf(HasSubstr("measured   125.0 us"), HasSubstr("half of 3"),
                          HasSubstr("predicted  111.0 us, 0.888"), HasSubstr("oracle     120.0 us"),
                          HasSubstr("0.960"), HasSubstr("4.0 % less"),
                          HasSubstr("2.5 in the first step, 2.125 in step 3")));
  EXPECT_THAT(text, AllOf(HasSubstr("gpu0"), HasSubstr("gpu1"), HasSubstr("1.9 MiB"),
                          HasSubstr("mm"), HasSubstr("1.05"), HasSubstr("0.50")));
}

TEST(ExecutionReport, has_losses_of_all_steps_or_of_some_of_many) {
  Execution execution = some_execution();
  EXPECT_THAT(to_text(execution), HasSubstr("\n           by step: 2.5, 2.25, 2.125\n"));
  execution.measurement.losses = {2.5, 2.25};
  EXPECT_THAT(to_text(execution), Not(HasSubstr("by step")));
  std::vector<double>& losses = execution.measurement.losses;
  losses.clear();
  for (int i = 0; i < 60; ++i) losses.push_back(100 - i);
  EXPECT_THAT(to_text(execution),
              HasSubstr("\n           in steps 1, 6, 11, ...: 100, 95, 90, 85, 80, 75, 70, 65, 60, "
                        "55, 50, 45\n"));
  losses.assign(1'000'000, 0.25);
  EXPECT_THAT(to_text(execution), HasSubstr("in steps 1, 100001, 200001, ...: 0.25, 0.25"));
  losses.assign(30, 0.123456789);
  EXPECT_THAT(to_text(execution),
              AllOf(HasSubstr("by step: 0.1235, "), HasSubstr("0.1235,\n             0.1235")));
}

TEST(ExecutionReport, says_nothing_of_what_there_is_not) {
  Execution execution = some_execution();
  execution.measurement.losses.clear();
  execution.drift.reset();
  const std::string text = to_text(execution);
  EXPECT_THAT(text, AllOf(Not(HasSubstr("loss")), Not(HasSubstr("drift"))));
  const auto json = nlohmann::json::parse(to_json(execution));
  EXPECT_TRUE(json["drift"].is_null());
  EXPECT_EQ(json["losses"].size(), 0U);
}

TEST(ExecutionReport, tells_programs_the_same) {
  const auto json = nlohmann::json::parse(to_json(some_execution()));
  EXPECT_EQ(json["steps"], 3);
  EXPECT_EQ(json["step_ms"], 0.125);
  EXPECT_EQ(json["steps_ms"], (nlohmann::json{0.12, 0.125, 0.13}));
  EXPECT_EQ(json["predicted_ms"], 0.111);
  EXPECT_DOUBLE_EQ(json["predicted_ratio"], 0.888);
  EXPECT_DOUBLE_EQ(json["oracle_ratio"], 0.96);
  EXPECT_EQ(json["drift"], 0.96);
  EXPECT_EQ(json["losses"], (nlohmann::json{2.5, 2.25, 2.125}));
  ASSERT_EQ(json["devices"].size(), 2U);
  EXPECT_EQ(json["devices"][0]["name"], "gpu0");
  EXPECT_EQ(json["devices"][0]["peak_bytes"], 2'000'000);
  EXPECT_EQ(json["devices"][0]["cached_bytes"], 500'000);
  EXPECT_EQ(json["types"][0]["type"], "mm");
  EXPECT_EQ(json["warnings"][0], "devices share a core");
  EXPECT_FALSE(json.contains("failure"));
}

TEST(ExecutionReport, says_why_a_step_failed_and_nothing_else) {
  Execution execution = some_execution();
  execution.measurement = {};
  execution.measurement.failure = {exec::Failure::Kind::kMemory, "op 'a' on device 'gpu0': full"};
  EXPECT_THAT(to_text(execution), AllOf(HasSubstr("failed: op 'a' on device 'gpu0': full"),
                                        Not(HasSubstr("measured"))));
  const auto json = nlohmann::json::parse(to_json(execution));
  EXPECT_EQ(json["failure"], "op 'a' on device 'gpu0': full");
  EXPECT_FALSE(json.contains("step_ms"));
}

std::vector<MeasuredCandidate> some_candidates() {
  MeasuredCandidate best{.solution = {.placement = {}, .origin = "metis"}, .predicted = 100'000};
  best.measured = {.median = 125'000, .low = 120'000, .high = 130'000};
  return {best,
          {.solution = {.placement = {}, .origin = "all on gpu0"},
           .predicted = 210'000,
           .failure = "op 'a': memory runs out"}};
}

TEST(MeasuredReport, tells_what_was_executed) {
  EXPECT_THAT(
      to_text(some_candidates()),
      AllOf(HasSubstr("metis"), HasSubstr("125.0 us"), HasSubstr("0.800"), HasSubstr("all on gpu0"),
            HasSubstr("failed"), HasSubstr("op 'a': memory runs out")));
  const auto json = nlohmann::json::parse(with_measured(R"({"step_ns": 1})", some_candidates()));
  EXPECT_EQ(json["step_ns"], 1);
  ASSERT_EQ(json["measured"].size(), 2U);
  EXPECT_EQ(json["measured"][0]["origin"], "metis");
  EXPECT_EQ(json["measured"][0]["measured_ms"], 0.125);
  EXPECT_EQ(json["measured"][1]["failure"], "op 'a': memory runs out");
  EXPECT_EQ(with_measured("{}", {}), "{}");
}

}  // namespace
}  // namespace emplace
