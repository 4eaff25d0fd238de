// emplace train, and what place does with its files.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/learned_placers.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;
using testing::TemporaryFolder;

constexpr const char* kSmall = " --clusters 2xp100 --policy gdp --width 8 --layers 1 --steps 2 ";
constexpr const char* kGraphs = " --graphs family:ptb:sequence=2,seed=0..1 ";

constexpr const char* kChain = R"({
  "format": "emplace.graph/1", "name": "chain",
  "tensors": [{"bytes": 4000000}, {"bytes": 1000000}, {"bytes": 8}],
  "ops": [
    {"name": "w", "type": "parameter", "inputs": [], "outputs": [0]},
    {"name": "a", "type": "mm", "inputs": [0], "outputs": [1], "time_us": {"p100": 100}},
    {"name": "b", "type": "mm", "inputs": [1], "outputs": [2], "time_us": {"p100": 50}}]})";

class TrainCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (learned_placers().empty()) GTEST_SKIP() << "built without learned placers";
  }

  CommandResult train(const std::string& arguments) const {
    return folder_.emplace("train " + arguments);
  }
  std::string done(const std::string& arguments) const {
    const CommandResult result = train(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.err;
    return result.out;
  }
  // Leaves nothing behind.
  void expect_refused(const std::string& arguments, const std::string& message) const {
    const std::size_t files = folder_.num_files();
    const CommandResult result = train(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, IsEmpty()) << arguments;
    EXPECT_THAT(result.err, HasSubstr(message)) << arguments;
    EXPECT_EQ(folder_.num_files(), files) << arguments;
  }

  TemporaryFolder folder_;
};

TEST_F(TrainCommand, writes_a_policy_that_places) {
  const std::string said =
      done(std::string(kSmall) + kGraphs + "--imitate expert --imitation-steps 1 -o my.policy");
  EXPECT_THAT(said, AllOf(HasSubstr("2 tasks"), HasSubstr("wrote the policy to my.policy")));
  ASSERT_TRUE(folder_.has("my.policy"));
  EXPECT_EQ(folder_.num_files(), 1U);
  EXPECT_THAT(done("--describe my.policy"),
              AllOf(HasSubstr("policy: gdp"), HasSubstr("width 8, layers 1"),
                    HasSubstr("family:ptb:sequence=2,seed=0..1"), HasSubstr("2xp100"),
                    HasSubstr("tasks: 2\n"), HasSubstr("1 of imitation of expert"),
                    HasSubstr("2 of practice"), HasSubstr("seed: 1\n")));
  const CommandResult placed = folder_.emplace(
      "place family:ptb:sequence=2,seed=9 -c 4xp100 -p 'gdp(policy=my.policy)' -o placed.json");
  EXPECT_EQ(placed.exit_code, 0) << placed.err;
  EXPECT_TRUE(folder_.has("placed.json"));
}

TEST_F(TrainCommand, writes_the_same_for_the_same_seed) {
  const std::string arguments = std::string(kSmall) + kGraphs + "--seed 3 ";
  done(arguments + "--threads 1 -o a");
  done(arguments + "--threads 2 -o b");
  EXPECT_FALSE(folder_.read("a").empty());
  EXPECT_TRUE(folder_.read("a") == folder_.read("b"));
}

TEST_F(TrainCommand, goes_on_from_a_policy) {
  const std::string arguments = std::string(kSmall) + "--graphs family:ptb:sequence=2 ";
  done(arguments + "-o first");
  done(arguments + "--from first -o second");
  EXPECT_FALSE(folder_.read("first") == folder_.read("second"));
  expect_refused(arguments + "--width 16 --from first -o third", "width");
  folder_.write("text", "all is well\n");
  expect_refused(arguments + "--from text -o third", "text: not a policy");
}

// Of the same seed: the one is ended by its budget before the last step and resumed, the other not.
TEST_F(TrainCommand, a_resumed_training_writes_what_an_uninterrupted_one_does) {
  for (const std::string policy : {"gdp", "placeto"}) {
    const std::string arguments = " -c 2xp100 --policy " + policy +
                                  " --width 8 --layers 1 --imitate expert --imitation-steps 2 "
                                  "--steps 2 --tasks-per-step 1 --graphs "
                                  "family:ptb:sequence=2,seed=0..1 --seed 5 --json ";
    const std::string whole = policy + ".whole";
    const Json done_at_once = Json::parse(done(arguments + "-o " + whole));
    const std::string files =
        " --checkpoint " + policy + ".state --curves " + policy + ".curves -o " + policy + ".part ";
    const std::int64_t evaluations = done_at_once["evaluations"];
    const Json first =
        Json::parse(done(arguments + files + "--evaluations " + std::to_string(evaluations - 1)));
    EXPECT_EQ(first["finished"], false);
    // A step of practice is begun only where the budget surely holds it.
    EXPECT_GE(first["steps"], 2);
    EXPECT_LT(first["steps"], 4);
    EXPECT_FALSE(folder_.read(whole) == folder_.read(policy + ".part"));
    expect_refused(arguments + files, "exists");
    const Json second = Json::parse(done(arguments + files + "--resume"));
    EXPECT_EQ(second["finished"], true);
    EXPECT_EQ(second["evaluations"], evaluations);
    EXPECT_EQ(second["relative_time"], done_at_once["relative_time"]);
    EXPECT_TRUE(folder_.read(whole) == folder_.read(policy + ".part")) << policy;
    const std::string curves = folder_.read(policy + ".curves/curves.csv");
    EXPECT_EQ(std::count(curves.begin(), curves.end(), '\n'), 1 + 4) << curves;
    EXPECT_THAT(curves, AllOf(HasSubstr("step,evaluations,seconds,phase"), HasSubstr("\n4,"),
                              HasSubstr("practice")));
  }
  expect_refused(std::string(kSmall) +
                     "--graphs family:ptb:sequence=2 --checkpoint gdp.state --resume -o other",
                 "gdp.state: is of another training");
  expect_refused(
      " -c 2xp100 --policy gdp --width 8 --layers 1 --imitate expert --imitation-steps 2 --steps 2 "
      "--tasks-per-step 1 --learning-rate 0.5 --graphs family:ptb:sequence=2,seed=0..1 --seed 5 "
      "--checkpoint gdp.state --resume -o other",
      "gdp.state: is of another training");
}

TEST_F(TrainCommand, prints_json) {
  const Json json =
      Json::parse(done(std::string(kSmall) + kGraphs + "--threads 1 --json -o my.policy"));
  EXPECT_EQ(json["format"], "emplace.training/1");
  EXPECT_EQ(json["policy"], "gdp");
  EXPECT_EQ(json["tasks"], 2);
  EXPECT_EQ(json["steps"], 2);
  EXPECT_EQ(json["finished"], true);
  EXPECT_EQ(json["output"], "my.policy");
  EXPECT_EQ(json["reference"], "expert");
  EXPECT_GT(json["relative_time"], 0);
  EXPECT_EQ(json["budget"]["threads"], 1);
  EXPECT_THAT(train("--help").out, AllOf(HasSubstr("`expert`"), HasSubstr("-c,--cluster")));
  EXPECT_EQ(train(std::string(kSmall) + kGraphs + "--threads 0 -o my.policy").exit_code, 2);
}

TEST_F(TrainCommand, multiplies_graphs_clusters_and_memory) {
  EXPECT_THAT(done("--graphs family:ptb:sequence=2,seed=0..1 --clusters 2xp100,4xp100 "
                   "--memory 0.5,0.9 --width 8 --steps 0 -o my.policy"),
              HasSubstr("8 tasks, 0 placements"));
}

TEST_F(TrainCommand, reads_the_model_files_of_a_folder) {
  std::filesystem::create_directory(folder_.path("graphs"));
  expect_refused(std::string(kSmall) + "--graphs graphs -o my.policy", "graphs: has no model file");
  for (const std::string name : {"a.json", "b.json", "notes.txt"}) {
    folder_.write("graphs/" + name, kChain);
  }
  EXPECT_THAT(done(std::string(kSmall) + "--graphs graphs,family:ptb:sequence=2 -o my.policy"),
              HasSubstr("3 tasks"));
}

TEST_F(TrainCommand, says_what_is_missing) {
  expect_refused(std::string(kSmall) + kGraphs, "--output");
  expect_refused(std::string(kSmall) + "-o my.policy", "graphs and clusters are missing");
}

TEST_F(TrainCommand, refuses_graphs_and_clusters_that_there_are_not) {
  const std::string output = std::string(kSmall) + " -o my.policy ";
  expect_refused(output + "--graphs family:ptb:seed=5..2", "seed=5..2");
  expect_refused(output + "--graphs family:nosuch", "nosuch");
  expect_refused(std::string(kGraphs) + "--clusters 3xnosuch -o my.policy", "nosuch");
  expect_refused(output + kGraphs + "--imitate nosuch --imitation-steps 1", "nosuch");
}

TEST_F(TrainCommand, refuses_an_output_that_cannot_be_written) {
  const std::string arguments = std::string(kSmall) + kGraphs;
  expect_refused(arguments + "-o none/my.policy", "none/my.policy");
  expect_refused(arguments + "-o /proc/my.policy", "/proc/my.policy");
}

TEST_F(TrainCommand, stops_in_time) {
  EXPECT_THAT(done("--graphs family:ptb:sequence=2 --clusters 2xp100 --width 8 --steps 100000000 "
                   "--time 3s -o my.policy"),
              AllOf(HasSubstr("stopped before the last step"), HasSubstr("wrote")));
  EXPECT_TRUE(folder_.has("my.policy"));
}

}  // namespace
}  // namespace emplace
