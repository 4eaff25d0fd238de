// Partitions, selections and training by the public headers alone.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/fork_model.h"
#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::shared_ptr<const Problem> small_rnn(const std::string& cluster,
                                         const CompileOptions& options = {}) {
  return compile(read_model("zoo:stacked-rnn:layers=1,hidden=64,sequence=2,batch=8").graph,
                 read_cluster(cluster), options);
}

TEST(Partition, divides_a_model_into_one_that_simulates_to_the_same_step) {
  PartitionOptions options;
  options.method = "tofu";
  options.budget.seconds = 1;
  const Partition found = partition(small_rnn("2xp100"), options);
  EXPECT_GT(found.step(), 0);
  EXPECT_EQ(simulate(found.divided(), found.placement()).step, found.step());
  EXPECT_EQ(Json::parse(found.plan_json())["format"], "emplace.partition/1");
  EXPECT_EQ(Json::parse(found.to_json())["step_ns"], found.step());
  EXPECT_THAT(found.to_text(), HasSubstr("tofu"));
  EXPECT_FALSE(found.verdict().empty());
}

TEST(Partition, refuses_what_it_cannot_do) {
  const auto error = [](const std::shared_ptr<const Problem>& problem, PartitionOptions options) {
    options.budget.seconds = 1;
    return error_text([&] { partition(problem, options); });
  };
  EXPECT_THAT(error(small_rnn("1xp100"), {}), HasSubstr("has one device"));
  EXPECT_THAT(error(small_rnn("2xp100"), {.method = "toffu"}), HasSubstr("did you mean 'tofu'"));
  EXPECT_THAT(error(small_rnn("2xp100"), {.workers = 4}), HasSubstr("4 workers"));
  EXPECT_THAT(error(small_rnn("2xp100", {.fuse = true}), {}), HasSubstr("whole ops"));
}

TEST(Select, solves_a_strategy_selection_problem) {
  const testing::TemporaryFolder folder;
  // The contest's example; 445 is the best by trying everything.
  const auto problem = [&](int limit) {
    return folder.write("problem.json", R"({"problem": {"name": "example",
      "nodes": {"intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
                "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
                "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]]},
      "edges": {"nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
                "costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]]},
      "usage_limit": )" + std::to_string(limit) +
                                            "}}");
  };
  SelectOptions options;
  options.budget.seconds = 5;
  const Selection best = select(problem(50), options);
  EXPECT_TRUE(best.feasible);
  EXPECT_TRUE(best.proven);
  EXPECT_EQ(best.cost, 445);
  EXPECT_EQ(best.lower_bound, 445);
  EXPECT_EQ(best.strategies.size(), 5U);
  EXPECT_FALSE(select(problem(49), options).feasible);
  EXPECT_THAT(error_text([&] { select(folder.write("bad.json", "{}"), options); }),
              HasSubstr("bad.json"));
}

bool can_learn() {
  const std::vector<MethodInfo> placers = list_placers();
  return std::any_of(placers.begin(), placers.end(),
                     [](const MethodInfo& info) { return info.learns; });
}

TEST(Train, makes_a_policy_that_places) {
  if (!can_learn()) GTEST_SKIP() << "built without libtorch";
  const testing::TemporaryFolder folder;
  TrainOptions options;
  options.graphs = {"family:ptb:sequence=2,seed=0..1"};
  options.clusters = {"2xp100"};
  options.settings = {{"width", "8"}, {"layers", "1"}, {"steps", "1"}};
  const TrainResult result = train(options);
  EXPECT_EQ(result.tasks, 2U);
  EXPECT_TRUE(result.finished);
  EXPECT_GT(result.evaluations, 0);
  const std::string path = folder.write("my.policy", result.policy);
  EXPECT_THAT(describe_policy(path), HasSubstr("policy: gdp"));
  PlaceOptions placing;
  placing.placer = "gdp(policy=" + path + ")";
  placing.budget.evaluations = 20;
  const auto problem =
      compile(read_model("family:ptb:sequence=2,seed=9").graph, read_cluster("2xp100"));
  EXPECT_GT(place(problem, placing).time(), 0);
}

TEST(Train, refuses_bad_options) {
  if (!can_learn()) GTEST_SKIP() << "built without libtorch";
  TrainOptions options;
  EXPECT_THAT(error_text([&] { train(options); }), HasSubstr("graphs and clusters are missing"));
  options.settings = {{"wdith", "8"}};
  EXPECT_THAT(error_text([&] { train(options); }), HasSubstr("did you mean 'width'"));
  EXPECT_FALSE(train_settings().empty());
}

}  // namespace
}  // namespace emplace
