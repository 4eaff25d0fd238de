#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using OrderedJson = nlohmann::ordered_json;
using testing::TemporaryFolder;

std::string result_named(const std::string& title) {
  return OrderedJson{{"title", title}, {"answer", {{"step_ns", 1}, {"fits", true}}}}.dump();
}

TEST(ReportPage, holds_what_it_was_given_whatever_its_names) {
  const TemporaryFolder folder;
  std::string long_name = "</script><script>alert(1)</script> EMPLACE_DATA \"\\ \xc3\xa9 ";
  for (int i = 0; i < 5000; ++i) long_name += static_cast<char>('a' + i * i % 26);
  for (std::size_t cut = 0; cut < 3; ++cut) {  // so that every way to pad is met
    const std::string result = result_named(long_name.substr(0, long_name.size() - cut));
    const std::string page = page_html({result, result_named("b")});
    EXPECT_THAT(page, AllOf(HasSubstr("<!doctype html>"), Not(HasSubstr("alert(1)"))));
    const std::string path = folder.write("page.html", page);
    EXPECT_EQ(results_in(path), (std::vector<std::string>{result, result_named("b")}));
  }
}

// Of every page that is written, so that many can be kept and sent.
TEST(ReportPage, has_no_more_code_than_it_may) {
  constexpr std::size_t kMost = 150'000;
  constexpr std::size_t kSmallestData = 1000;
  const std::string page = page_html({result_named("")});
  EXPECT_GT(page.size(), kSmallestData);
  EXPECT_LE(page.size(), kMost + kSmallestData);
}

TEST(ReportPage, of_what_json_printed_has_what_that_says) {
  const TemporaryFolder folder;
  const auto only = [&](const std::string& text) {
    return OrderedJson::parse(results_in(folder.write("a.json", text)).at(0));
  };
  const OrderedJson answer = only(
      R"({"format": "emplace.answer/1", "graph": "g", "cluster": "c", "step_ns": 5, "fits": true})");
  EXPECT_EQ(answer["title"], "g on c");
  EXPECT_EQ(answer["answer"]["step_ns"], 5);
  const OrderedJson comparison = only(
      R"({"format": "emplace.comparison/1", "graph": "g", "cluster": "c", "placers": [],
          "runs": [{"placer": "a", "step_ns": 3, "fits": true}, {"placer": "b", "step_ns": 4}]})");
  EXPECT_EQ(comparison["answer"]["placer"], "a");
  EXPECT_EQ(comparison["answer"]["graph"], "g");
  EXPECT_EQ(comparison["comparison"]["runs"].size(), 2U);
}

TEST(ReportPage, of_a_run_has_what_was_predicted_and_measured) {
  const TemporaryFolder folder;
  const std::string run = R"({"format": "emplace.execution/1", "graph": "g", "cluster": "c",
      "steps": 2, "predicted_ms": 1.5, "losses": [null]})";
  const OrderedJson result = OrderedJson::parse(results_in(folder.write("run.json", run)).at(0));
  EXPECT_EQ(result["title"], "g on c");
  EXPECT_EQ(result["answer"]["step_ns"], 1'500'000);
  EXPECT_EQ(result["execution"]["steps"], 2);
  const std::string failed = folder.write(
      "failed.json", R"({"format": "emplace.execution/1", "failure": "op 'a': out of memory"})");
  EXPECT_THAT(error_text([&] { results_in(failed); }),
              AllOf(HasSubstr("failed.json"), HasSubstr("op 'a': out of memory")));
}

TEST(ReportPage, of_several_clusters_has_each) {
  const TemporaryFolder folder;
  const std::vector<std::string> results = results_in(folder.write(
      "clusters.json", R"({"format": "emplace.cluster-comparison/1", "model": "m", "clusters": [
          {"cluster": "a", "devices": 4, "fits": true, "step_ns": 3},
          {"cluster": "b", "devices": 1, "fits": false, "reason": "too small"}]})"));
  ASSERT_EQ(results.size(), 2U);
  const OrderedJson first = OrderedJson::parse(results[0]);
  EXPECT_EQ(first["title"], "m on a");
  EXPECT_EQ(first["answer"]["step_ns"], 3);
  EXPECT_FALSE(first["answer"].contains("devices"));
  EXPECT_EQ(OrderedJson::parse(results[1])["why_nothing_fits"], "too small");
}

TEST(ReportPage, of_something_else_is_refused_by_name) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    const std::string path = folder.write("odd.json", text);
    return error_text([&] { results_in(path); });
  };
  EXPECT_THAT(refusal("hello"), AllOf(HasSubstr("odd.json"), HasSubstr("neither a page nor JSON")));
  EXPECT_THAT(refusal("[1]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal(R"({"format": "emplace.graph/1"})"),
              AllOf(HasSubstr("odd.json"), HasSubstr("emplace.graph/1")));
  EXPECT_THAT(refusal(R"({"format": "emplace.report/1", "results": []})"), HasSubstr("'results'"));
  EXPECT_THAT(refusal(R"({"format": "emplace.answer/1", "graph": 5, "step_ns": 1})"),
              AllOf(HasSubstr("odd.json"), HasSubstr("a field is not what it should be")));
  EXPECT_THAT(refusal(R"(<script id="data" type="text/plain">!!</script>)"), HasSubstr("corrupt"));
  EXPECT_THAT(refusal(R"(<script id="data" type="text/plain">AAAA)"), HasSubstr("too early"));
  // Deeper than the stack is.
  constexpr std::size_t kDeep = 1'000'000;
  EXPECT_THAT(refusal(R"({"format": "emplace.report/1", "results": [{"answer": )" +
                      std::string(kDeep, '[') + std::string(kDeep, ']') + "}]}"),
              AllOf(HasSubstr("odd.json"), HasSubstr("1024 deep")));
}

// Brackets in names are no nesting.
TEST(ReportPage, takes_names_of_any_characters) {
  const TemporaryFolder folder;
  const std::string name = std::string(5000, '[') + R"(\"{</script><img src=x onerror=alert(1)>)";
  const std::string path = folder.write(
      "a.json", R"({"format": "emplace.answer/1", "graph": ")" + name + R"(", "step_ns": 1})");
  const std::vector<std::string> results = results_in(path);
  ASSERT_EQ(results.size(), 1U);
  const std::string page = page_html(results);
  EXPECT_THAT(page, Not(HasSubstr("onerror=alert(1)")));
  EXPECT_EQ(results_in(folder.write("page.html", page)), results);
}

}  // namespace
}  // namespace emplace
