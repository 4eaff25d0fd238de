#include "report/comparison.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/fork.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

Comparison compare_on(const std::shared_ptr<const Problem>& problem, const std::string& placers,
                      bool best_orders = false) {
  const SubsetProblems problems(problem, {});
  std::vector<PlacerRun> runs = make_runs(placers, best_orders ? "best" : "own");
  const std::size_t asked = runs.size();
  Budget budget;
  budget.evaluations = 100;
  Portfolio portfolio(problems,
                      {.runs = std::move(runs), .budget = budget, .time_for = TimeFor::kEachRun});
  return compare(problems, portfolio.run(), asked);
}

TEST(Comparison, has_a_row_for_each_result_the_best_first) {
  const Comparison comparison =
      compare_on(fork_on(gpu_cluster(2, 1'000'000)), "single,expert,single(device=9)");
  ASSERT_EQ(comparison.rows.size(), 2U);
  EXPECT_EQ(comparison.asked, 3U);
  EXPECT_EQ(comparison.done, 2U);
  const ComparisonRow& best = comparison.rows[0];
  EXPECT_EQ(best.placer, "expert");
  EXPECT_EQ(best.time, kForkOnTwo);
  EXPECT_TRUE(best.fits);
  EXPECT_EQ(best.transfers, 1);
  EXPECT_EQ(best.transfer_bytes, 1000);
  EXPECT_NEAR(best.ratio_to_bound, 111.0 / 110, 1e-9);
  EXPECT_GT(best.fullest_memory, 0);
  EXPECT_LT(best.fullest_memory, 0.01);
  EXPECT_EQ(comparison.rows[1].family, "heuristic");
  EXPECT_EQ(comparison.best.time(), kForkOnTwo);
  EXPECT_EQ(comparison.single.fitting->value.step, kForkOnOne);
}

TEST(Comparison, keeps_the_best_order_of_each_placer) {
  const Comparison comparison = compare_on(fork_on(gpu_cluster(2)), "single,expert", true);
  EXPECT_EQ(comparison.rows.size(), 2U);
  EXPECT_EQ(comparison.done, comparison.asked);
  for (const ComparisonRow& row : comparison.rows) EXPECT_NE(row.scheduler, "best");
}

TEST(ComparisonHeadline, says_the_winner_the_bound_and_the_gains) {
  const std::string text = headline(compare_on(fork_on(gpu_cluster(2)), "single,expert"));
  EXPECT_THAT(text, StartsWith("Best: expert, a step time of 111.0 us.\n"));
  EXPECT_THAT(text, HasSubstr("within 1 % of the best possible placement: none that fits beats"
                              " 110.0 us"));
  EXPECT_THAT(text, HasSubstr("1.89 times as fast as one device (210.0 us)"));
}

TEST(ComparisonHeadline, names_the_device_where_they_differ) {
  ClusterSpec cluster = gpu_cluster(2);
  cluster.devices[0].slowdown = {2, 0};
  const std::string text = headline(compare_on(fork_on(cluster), "single,expert"));
  EXPECT_THAT(text, HasSubstr("times as fast as gpu1 alone (210.0 us)"));
}

TEST(Comparison, says_in_json_what_keeping_modules_whole_costs) {
  Comparison comparison = compare_on(fork_on(gpu_cluster(2)), "single");
  EXPECT_FALSE(Json::parse(to_json(comparison)).contains("whole_modules"));
  comparison.whole_modules =
      WholeModules{.parts = 3, .whole = {210'000, 0}, .op_by_op = Evaluation{105'000, 0}};
  const Json json = Json::parse(to_json(comparison));
  EXPECT_EQ(json["whole_modules"]["parts"], 3);
  EXPECT_DOUBLE_EQ(json["whole_modules"]["cost"], 1);
  EXPECT_EQ(json["whole_modules"]["op_by_op"]["step_ns"], 105'000);
}

TEST(ComparisonHeadline, compares_with_the_best_heuristic_unless_that_wins) {
  const auto problem = fork_on(gpu_cluster(2));
  EXPECT_THAT(headline(compare_on(problem, "hash,auto")),
              AllOf(StartsWith("Best: auto"), HasSubstr("(hash,")));
  EXPECT_THAT(headline(compare_on(problem, "heft")), Not(HasSubstr("heuristic")));
}

TEST(ComparisonHeadline, says_that_it_is_proven_optimal) {
  const std::string text = headline(compare_on(fork_on(gpu_cluster(1)), "single"));
  EXPECT_THAT(text, HasSubstr("That is proven optimal: no placement"));
  EXPECT_THAT(text, HasSubstr("1.00 times as fast as one device"));
}

TEST(ComparisonHeadline, says_that_one_device_will_not_do) {
  const auto tight = compile_timed(fork_graph(3000), gpu_cluster(2, 6500));
  EXPECT_THAT(headline(compare_on(tight, "expert,metis,heft,lns")),
              HasSubstr("No single device holds it (gpu0 would need "));
  const CompileOptions apart{.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "left=gpu0"),
                                       DeviceRule::parse(DeviceRule::Kind::kPin, "right=gpu1")}};
  EXPECT_THAT(headline(compare_on(fork_on(gpu_cluster(2), apart), "heft")),
              HasSubstr("One device may not run every op"));
}

TEST(ComparisonHeadline, says_what_is_short_where_none_fits) {
  const std::string text = headline(compare_on(fork_on(gpu_cluster(2, 2500)), "single(device=0)"));
  EXPECT_THAT(text, StartsWith("None fits in memory; single(device=0) is nearest.\n"));
  EXPECT_THAT(text, HasSubstr("'gpu0' needs 2.9 KiB of its 2.4 KiB, 504 B short"));
}

TEST(ComparisonTable, has_a_line_for_each_row) {
  const Comparison comparison =
      compare_on(fork_on(gpu_cluster(2, 2500)), "single(device=0),expert");
  const std::string text = to_table(comparison.rows, {}, false);
  EXPECT_THAT(text, HasSubstr("step time"));
  EXPECT_THAT(text, HasSubstr("111.0 us"));
  EXPECT_THAT(text, HasSubstr("does not fit: 504 B short"));
  EXPECT_THAT(text, Not(HasSubstr("seed")));
  EXPECT_THAT(to_table(comparison.rows, {}, true), HasSubstr("seed"));
}

TEST(ComparisonJson, has_placers_and_runs) {
  const Json json = Json::parse(to_json(compare_on(fork_on(gpu_cluster(2)), "single,expert")));
  const Json& runs = json["runs"];
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0]["placer"], "expert");
  EXPECT_EQ(runs[0]["step_ns"], kForkOnTwo);
  EXPECT_EQ(runs[1]["placer"], "single");
  EXPECT_EQ(runs[1]["step_ns"], kForkOnOne);
  const Json& placers = json["placers"];
  ASSERT_EQ(placers.size(), 2U);
  EXPECT_EQ(placers[0]["placer"], "expert");
  EXPECT_EQ(placers[0]["runs"], 1);
  EXPECT_EQ(placers[0]["mean_step_ns"], static_cast<double>(kForkOnTwo));
  EXPECT_EQ(placers[0]["best_step_ns"], kForkOnTwo);
  EXPECT_TRUE(placers[0]["interval_step_ns"].is_null());
}

ComparisonRow row_of(const std::string& placer, std::uint64_t seed, Nanoseconds time,
                     bool fits = true) {
  ComparisonRow row;
  row.placer = placer;
  row.scheduler = "own";
  row.seed = seed;
  row.time = time;
  row.fits = fits;
  row.seconds = 0.5;
  row.evaluations = 10;
  return row;
}

// By hand: 10, 12 and 14 have the mean 12 and the deviation 2, so 12 +- 4.303 * 2 / sqrt(3).
TEST(ComparisonSummary, has_the_mean_its_interval_and_the_best) {
  Comparison comparison = compare_on(fork_on(gpu_cluster(2)), "single");
  comparison.rows = {row_of("a", 1, 10), row_of("a", 2, 14), row_of("a", 3, 12),
                     row_of("b", 1, 11)};
  const std::vector<ComparisonSummary> summaries = summarize(comparison.rows);
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].placer, "b");
  const ComparisonSummary& a = summaries[1];
  EXPECT_EQ(a.runs, 3U);
  EXPECT_EQ(a.fitting, 3U);
  EXPECT_DOUBLE_EQ(a.time.mean, 12);
  EXPECT_NEAR(a.time.low, 12 - 4.303 * 2 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(a.time.high, 12 + 4.303 * 2 / std::sqrt(3), 1e-9);
  EXPECT_EQ(a.best, 10);
  EXPECT_EQ(a.worst, 14);
  EXPECT_EQ(a.evaluations, 10);
  EXPECT_DOUBLE_EQ(a.seconds, 0.5);
}

TEST(ComparisonSummary, puts_what_fits_more_often_first_and_leaves_out_what_does_not) {
  Comparison comparison = compare_on(fork_on(gpu_cluster(2)), "single");
  comparison.rows = {row_of("quick", 1, 10), row_of("quick", 2, 1, false),
                     row_of("none", 1, 1, false), row_of("slow", 1, 90), row_of("slow", 2, 92)};
  const std::vector<ComparisonSummary> summaries = summarize(comparison.rows);
  ASSERT_EQ(summaries.size(), 3U);
  EXPECT_EQ(summaries[0].placer, "slow");
  EXPECT_EQ(summaries[1].placer, "quick");
  EXPECT_DOUBLE_EQ(summaries[1].time.mean, 10);
  EXPECT_EQ(summaries[2].placer, "none");
  EXPECT_THAT(summary_table(comparison.rows, {}),
              AllOf(HasSubstr("none fits"), HasSubstr("91 ns")));
}

TEST(ComparisonCsv, has_a_row_for_each_run_and_quotes_what_has_commas) {
  Comparison comparison = compare_on(fork_on(gpu_cluster(2)), "single");
  comparison.rows = {row_of("a(x=1,y=\"2\")", 1, 10), row_of("b", 2, 12, false)};
  EXPECT_EQ(to_csv(comparison.rows, {}, {{"model", "m,n"}}),
            "model,placer,family,scheduler,seed,step_ns,fits,ratio_to_bound,fullest_memory,"
            "shortfall_bytes,transfers,transfer_bytes,evaluations,seconds\n"
            "\"m,n\",\"a(x=1,y=\"\"2\"\")\",,own,1,10,true,0,0,0,0,0,10,0.5\n"
            "\"m,n\",b,,own,2,12,false,0,0,0,0,0,10,0.5\n");
}

}  // namespace
}  // namespace emplace
