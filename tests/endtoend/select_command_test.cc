// `emplace select`, as a person runs it; answers are checked by adding up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/strategy_checker.h"

namespace emplace {
namespace {

using testing::check_selection;
using testing::CheckedSelection;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;
using Json = nlohmann::json;

// The contest's example, whose limit its cheapest selection just fits in.
constexpr const char* kExample = R"({"problem": {"name": "example",
  "nodes": {"intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
            "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
            "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]]},
  "edges": {"nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
            "costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]]},
  "usage_limit": 50}})";

class SelectCommand : public ::testing::Test {
 protected:
  SelectCommand() { folder_.write("example.json", kExample); }

  CheckedSelection check(const std::string& problem, const Json& solution) const {
    return check_selection(problem, solution["strategies"].get<std::vector<std::int32_t>>());
  }

  TemporaryFolder folder_;
};

TEST_F(SelectCommand, writes_the_best_selection_of_the_example) {
  const CommandResult result = folder_.emplace("select example.json --time 5s -o out.json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("no selection costs less"));
  EXPECT_THAT(result.out, HasSubstr("wrote out.json"));
  const Json solution = Json::parse(folder_.read("out.json"));
  EXPECT_EQ(solution["format"], "emplace.strategies/1");
  const CheckedSelection checked = check(kExample, solution);
  EXPECT_THAT(checked.error, IsEmpty());
  EXPECT_TRUE(checked.fits);
  EXPECT_FALSE(checked.forbidden);
  EXPECT_TRUE(checked.cost == solution["cost"].get<std::int64_t>());
  EXPECT_EQ(solution["cost"], 445);  // by trying everything
  EXPECT_EQ(solution["lower_bound"], solution["cost"]);
}

TEST_F(SelectCommand, json_is_all_that_goes_to_standard_output) {
  const CommandResult result = folder_.emplace("select example.json --json");
  EXPECT_EQ(result.exit_code, 0);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["feasible"], true);
  EXPECT_EQ(json["proven"], true);
  EXPECT_EQ(json["peak_usage"], 50);
}

TEST_F(SelectCommand, exits_with_1_and_writes_nothing_when_nothing_fits) {
  Json problem = Json::parse(kExample);
  problem["problem"]["usage_limit"] = 49;
  folder_.write("tight.json", problem.dump());
  const CommandResult result = folder_.emplace("select tight.json --time 1s -o out.json");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("no selection is feasible"));
  EXPECT_FALSE(folder_.has("out.json"));
}

TEST_F(SelectCommand, exits_with_2_for_bad_input) {
  folder_.write("bad.json", R"({"problem": {"nodes": {"costs": [[]], "usages": [[]]}}})");
  const CommandResult bad = folder_.emplace("select bad.json");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.json: nodes.costs[0]"));
  EXPECT_EQ(folder_.emplace("select nowhere.json").exit_code, 2);
  EXPECT_EQ(folder_.emplace("select example.json --time soon").exit_code, 2);
  EXPECT_EQ(folder_.emplace("select example.json -o no/such/out.json").exit_code, 2);
  EXPECT_EQ(folder_.emplace("select").exit_code, 2);
}

TEST_F(SelectCommand, help_shows_an_example) {
  EXPECT_THAT(folder_.emplace("select --help").out, HasSubstr("Example: emplace select"));
}

}  // namespace
}  // namespace emplace
