#include "io/iopddl.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

#include "selection/selection_problem.h"
#include "selection/solve.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Json two_nodes() {
  return Json::parse(R"({"problem": {"name": "two",
    "edges": {"nodes": [[0, 1]], "costs": [[1, 2, 3, 4, 5, 6]]},
    "nodes": {"intervals": [[3, 9], []], "costs": [[7, 1000000000000000000], [1, 2, 3]],
              "usages": [[5, 6], [0, 0, 0]]},
    "usage_limit": 50}})");
}

std::string iopddl_error(const std::string& text) {
  try {
    read_iopddl_json(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

// With one value replaced.
std::string error_with(const char* pointer, const Json& value) {
  Json json = two_nodes();
  json[Json::json_pointer(pointer)] = value;
  return iopddl_error(json.dump());
}

TEST(Iopddl, reads_nodes_edges_and_the_limit) {
  const SelectionProblem problem = read_iopddl_json(two_nodes().dump());
  ASSERT_EQ(problem.num_nodes(), 2);
  EXPECT_THAT(problem.costs(0), ElementsAre(7, kForbidden));
  EXPECT_THAT(problem.usages(0), ElementsAre(5, 6));
  EXPECT_EQ(problem.interval(0).begin, 3);
  EXPECT_EQ(problem.interval(0).end, 9);
  EXPECT_TRUE(problem.interval(1).empty());
  ASSERT_EQ(problem.num_edges(), 1);
  EXPECT_THAT(problem.table(0), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(problem.usage_limit(), 50);
}

TEST(Iopddl, takes_absent_intervals_edges_and_limits) {
  Json json = two_nodes();
  json["problem"].erase("usage_limit");
  json["problem"].erase("edges");
  json["problem"]["nodes"].erase("intervals");
  const SelectionProblem problem = read_iopddl_json(json.dump());
  EXPECT_FALSE(problem.usage_limit().has_value());
  EXPECT_TRUE(problem.interval(0).empty());
  json["problem"]["nodes"]["intervals"] = {nullptr, {1, 1}};
  EXPECT_TRUE(read_iopddl_json(json.dump()).interval(1).empty());
}

TEST(Iopddl, errors_name_the_field) {
  EXPECT_THAT(iopddl_error("{"), HasSubstr("malformed JSON"));
  EXPECT_THAT(iopddl_error("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(iopddl_error("{}"), HasSubstr("problem: is missing"));
  EXPECT_THAT(iopddl_error(two_nodes().dump() + "x"), HasSubstr("malformed JSON"));
  EXPECT_THAT(iopddl_error(R"({"problem": {"nodes": {"usages": []}}})"),
              HasSubstr("nodes.costs: is missing"));
  EXPECT_THAT(error_with("/problem/nodes/costs/1", Json::array()),
              HasSubstr("nodes.costs[1]: is empty"));
  EXPECT_THAT(error_with("/problem/nodes/costs/1/2", -4), HasSubstr("nodes.costs[1][2]"));
  EXPECT_THAT(error_with("/problem/nodes/costs/1/2", 0.5), HasSubstr("nodes.costs[1][2]"));
  EXPECT_THAT(error_with("/problem/nodes/costs/1/2", "x"), HasSubstr("nodes.costs[1][2]"));
  EXPECT_THAT(error_with("/problem/nodes/costs/1", 3),
              HasSubstr("nodes.costs[1]: expected a list"));
  EXPECT_THAT(error_with("/problem/nodes/usages/0", {1}),
              HasSubstr("nodes.usages[0]: has 1 entries; expected 2"));
  EXPECT_THAT(error_with("/problem/nodes/usages", Json::array()),
              HasSubstr("nodes.usages: has 0 entries; expected 2"));
  EXPECT_THAT(error_with("/problem/nodes/intervals/0", {9, 3}),
              HasSubstr("nodes.intervals[0]: starts at 9 and ends at 3"));
  EXPECT_THAT(error_with("/problem/nodes/intervals/0", {9}), HasSubstr("expected [start, end]"));
  EXPECT_THAT(error_with("/problem/edges/nodes/0", {0, 2}),
              HasSubstr("edges.nodes[0]: there is no node 2"));
  EXPECT_THAT(error_with("/problem/edges/nodes/0", {0}), HasSubstr("expected two nodes"));
  EXPECT_THAT(error_with("/problem/edges/costs/0", {1, 2}),
              HasSubstr("edges.costs[0]: has 2 entries; expected 2 x 3"));
  EXPECT_THAT(error_with("/problem/edges/costs", Json::array()), HasSubstr("edges.costs: has 0"));
  EXPECT_THAT(error_with("/problem/usage_limit", -1), HasSubstr("usage_limit"));
  EXPECT_THAT(error_with("/problem/usage_limit", "many"), HasSubstr("usage_limit"));
}

TEST(Iopddl, a_missing_file_is_named) {
  try {
    read_iopddl("nowhere.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nowhere.json"));
  }
}

TEST(Iopddl, writes_a_selection) {
  SelectionResult result;
  result.strategies = {3, 0, 2};
  result.cost = 12;
  result.lower_bound = 11;
  const Json json = Json::parse(write_strategies_json(result));
  EXPECT_EQ(json["format"], "emplace.strategies/1");
  EXPECT_EQ(json["cost"], 12);
  EXPECT_EQ(json["lower_bound"], 11);
  EXPECT_EQ(json["strategies"], Json({3, 0, 2}));
}

// Beyond 10^18 sums are cut off, and would be taken for what may never be chosen.
TEST(Iopddl, refuses_sums_that_cannot_be_told_from_never) {
  const std::int64_t large = 600'000'000'000'000'000;
  EXPECT_EQ(error_with("/problem/nodes/costs/0", {large, 7}), "no error");
  Json json = two_nodes();
  json["problem"]["nodes"]["costs"] = {{large, 7}, {large, 2, 3}};
  EXPECT_THAT(iopddl_error(json.dump()), HasSubstr("nodes.costs[1]: with this one"));
  json = two_nodes();
  json["problem"]["nodes"]["costs"][0] = {large, 7};
  json["problem"]["edges"]["costs"][0] = {large, 2, 3, 4, 5, 6};
  EXPECT_THAT(iopddl_error(json.dump()), HasSubstr("edges.costs[0]: with this one"));
  EXPECT_THAT(error_with("/problem/usage_limit", std::int64_t{4'000'000'000'000'000'000}),
              HasSubstr("usage_limit: 4000000000000000000"));
}

}  // namespace
}  // namespace emplace
