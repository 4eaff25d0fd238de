#include "run/portfolio.h"

#include <algorithm>
#include <atomic>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placer/scheduler.h"

#include "placers/all.h"

#include "support/error_text.h"
#include "support/fork.h"
#include "support/random_problem.h"
#include "support/with_cpu.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names(const std::vector<PlacerRun>& runs) {
  std::vector<std::string> found;
  for (const PlacerRun& run : runs) {
    found.push_back(run.placer.to_string() + " " + run.scheduler + " " + std::to_string(run.seed));
  }
  return found;
}

std::vector<std::string> family(const std::string& name) {
  std::vector<std::string> keys;
  for (const MethodInfo* info : all_placers().list()) {
    if (info->family == name) keys.push_back(info->key + " own 1");
  }
  return keys;
}

TEST(MakeRuns, are_specs_families_or_all) {
  EXPECT_THAT(names(make_runs("heft,metis(imbalance=1.1)", "own")),
              ElementsAre("heft own 1", "metis(imbalance=1.1) own 1"));
  EXPECT_EQ(names(make_runs("heuristic", "own")), family("heuristic"));
  EXPECT_GT(family("heuristic").size(), 5U);
  EXPECT_EQ(make_runs("all", "own").size(),
            all_placers().list().size() - family("external").size());
  std::vector<std::string> both = family("exact");
  both.push_back("heft own 1");
  EXPECT_EQ(names(make_runs("exact,heft", "own")), both);
}

TEST(MakeRuns, give_randomised_placers_every_seed) {
  EXPECT_THAT(names(make_runs("random,heft", "own", 7, 3)),
              ElementsAre("random own 7", "random own 8", "random own 9", "heft own 7"));
}

TEST(MakeRuns, put_the_orders_of_one_placement_side_by_side) {
  EXPECT_THAT(names(make_runs("random", "own,pct", 1, 2)),
              ElementsAre("random own 1", "random pct 1", "random own 2", "random pct 2"));
  EXPECT_EQ(make_runs("heft", "all").size(), 1 + schedulers().size());
}

TEST(MakeRuns, refuse_what_there_is_not_before_anything_runs) {
  EXPECT_THAT(error_text([] { make_runs("heft,hefft", "own"); }),
              AllOf(HasSubstr("unknown placer 'hefft'"), HasSubstr("did you mean 'heft'")));
  EXPECT_THAT(error_text([] { make_runs("heft(speed=1)", "own"); }), HasSubstr("'speed'"));
  EXPECT_THAT(error_text([] { make_runs("heft", "pcd"); }),
              AllOf(HasSubstr("unknown scheduler 'pcd'"), HasSubstr("did you mean 'pct'"),
                    HasSubstr("own, fifo")));
}

PortfolioResult run(const SubsetProblems& problems, const std::string& placers,
                    const Budget& budget = {}, TimeFor time_for = TimeFor::kAllRuns,
                    const std::string& schedulers = "own") {
  return Portfolio(problems,
                   {.runs = make_runs(placers, schedulers), .budget = budget, .time_for = time_for})
      .run();
}

Budget evaluations(std::int64_t count) {
  Budget budget;
  budget.evaluations = count;
  return budget;
}

std::vector<std::string> placers_of(const PortfolioResult& result) {
  std::vector<std::string> found;
  for (const RunResult& one : result.results) found.push_back(one.run.placer.to_string());
  return found;
}

TEST(Portfolio, gives_the_best_first_and_equals_in_the_order_of_the_runs) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  const PortfolioResult result =
      run(problems, "single(device=1),single,single(device=0),expert", evaluations(100));
  EXPECT_THAT(placers_of(result),
              ElementsAre("expert", "single(device=1)", "single", "single(device=0)"));
  EXPECT_EQ(result.best().evaluation.step, kForkOnTwo);
  EXPECT_EQ(result.results[1].evaluation.step, kForkOnOne);
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST(Portfolio, goes_on_without_a_placer_that_fails_and_says_so) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  const PortfolioResult result = run(problems, "single(device=7),heft", {}, TimeFor::kEachRun);
  EXPECT_THAT(placers_of(result), ElementsAre("heft"));
  EXPECT_THAT(result.warnings,
              ElementsAre(AllOf(HasSubstr("placer 'single'"), HasSubstr("device 7"))));
}

TEST(Portfolio, does_not_try_the_other_orders_of_a_placer_that_fails) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  const PortfolioResult result =
      run(problems, "single(device=7),heft", {}, TimeFor::kEachRun, "all");
  EXPECT_EQ(result.results.size(), 1 + schedulers().size());
  EXPECT_EQ(result.warnings.size(), 1U);
}

TEST(Portfolio, fails_when_no_placer_copes) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  EXPECT_THAT(error_text([&] { run(problems, "single(device=7)"); }), HasSubstr("device 7"));
  EXPECT_THAT(error_text([&] { run(problems, "single(device=7),single(device=8)"); }),
              AllOf(HasSubstr("device 7"), HasSubstr("device 8")));
}

TEST(Portfolio, cancelled_before_it_begins_has_the_answer_of_the_first_run_or_the_quickest) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  const std::atomic<bool> cancelled{true};
  Budget budget;
  budget.cancelled = &cancelled;
  for (const TimeFor time_for : {TimeFor::kAllRuns, TimeFor::kEachRun}) {
    const PortfolioResult result = run(problems, "anneal,heft,metis", budget, time_for);
    ASSERT_THAT(placers_of(result), ElementsAre(time_for == TimeFor::kAllRuns ? "anneal" : "heft"));
    EXPECT_EQ(error_text([&] {
                check_placement(problems.whole()->problem(), result.best().result.placement);
              }),
              "");
  }
}

TEST(Portfolio, all_runs_share_the_time_or_each_has_it) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  Budget none;
  none.seconds = 0;
  EXPECT_THAT(placers_of(run(problems, "single,heft,metis", none, TimeFor::kAllRuns)),
              ElementsAre("single"));
  EXPECT_EQ(run(problems, "single,heft,metis", none, TimeFor::kEachRun).results.size(), 3U);
}

// Searches that end only when their time is up.
TEST(Portfolio, gives_each_of_several_searches_its_part_of_the_time) {
  Rng rng(11);
  const SubsetProblems problems(random_problem(rng, {.max_ops = 40}), StreamPeriod{});
  Budget budget;
  budget.seconds = 0.9;
  const PortfolioResult result = run(problems, "mcmc,genetic,anneal", budget, TimeFor::kAllRuns);
  ASSERT_EQ(result.results.size(), 3U);
  for (const RunResult& one : result.results) {
    EXPECT_LT(one.seconds, 0.7) << one.run.placer.key << " had more than its part";
  }
}

TEST(Portfolio, each_run_has_all_evaluations) {
  Rng rng(3);
  const SubsetProblems problems(random_problem(rng, {.max_ops = 40}), {});
  constexpr std::int64_t kSlack = 32;
  const PortfolioResult result = run(problems, "anneal,lns", evaluations(300));
  ASSERT_EQ(result.results.size(), 2U);
  for (const RunResult& one : result.results) EXPECT_LE(one.evaluations, 300 + kSlack);
}

TEST(Portfolio, answers_in_the_numbers_of_the_whole_cluster) {
  ClusterSpec cluster = gpu_cluster(3);
  cluster.devices[0].slowdown = cluster.devices[1].slowdown = Decimal{2, 0};
  const SubsetProblems problems(fork_on(cluster), {}, 1);
  ASSERT_GT(problems.list().size(), 1U);
  const PortfolioResult result = run(problems, "heft", evaluations(100));
  EXPECT_THAT(result.best().result.placement, Each(2)) << "the fast one";
  EXPECT_EQ(result.best().evaluation.step, kForkOnOne);
}

TEST(Portfolio, searches_anew_under_every_scheduler) {
  Rng rng(5);
  const SubsetProblems problems(random_problem(rng, {.max_ops = 40}), {});
  const PortfolioResult result =
      run(problems, "anneal", evaluations(200), TimeFor::kEachRun, "all");
  ASSERT_EQ(result.results.size(), 1 + schedulers().size());
  for (const RunResult& one : result.results) {
    EXPECT_GT(one.evaluations, 100) << one.run.scheduler;
    if (one.run.scheduler == "own") continue;
    EXPECT_EQ(one.result.schedule.priorities,
              make_schedule(problems.whole()->problem(), one.result.placement, one.run.scheduler)
                  .priorities);
  }
}

TEST(Portfolio, the_best_order_of_a_placement_costs_no_search) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng);
    if (!problem->cluster().fully_linked()) continue;
    const SubsetProblems problems(problem, {});
    const auto value = [&](const char* scheduler) {
      return run(problems, "random", evaluations(100), TimeFor::kEachRun, scheduler)
          .best()
          .evaluation;
    };
    const PortfolioResult best =
        run(problems, "random", evaluations(100), TimeFor::kEachRun, "best");
    ASSERT_EQ(best.results.size(), 1U);
    EXPECT_EQ(best.best().evaluation, value("all"));
    EXPECT_EQ(best.best().evaluation, value(best.best().run.scheduler.c_str()));
  }
}

TEST(CommonScheduler, is_what_all_runs_are_asked_for) {
  EXPECT_EQ(common_scheduler(make_runs("heft,metis", "fifo")), "fifo");
  EXPECT_EQ(common_scheduler(make_runs("heft,metis", "fifo,pct")), "own");
  EXPECT_EQ(common_scheduler(make_runs("heft", "best")), "own");
}

TEST(Portfolio, keeps_the_course_of_every_run_that_searched) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  PortfolioRequest request{.runs = make_runs("single,hill_climb", "own,pct"),
                           .time_for = TimeFor::kEachRun,
                           .keep_courses = true};
  request.budget.evaluations = 100;
  const PortfolioResult result = Portfolio(problems, request).run();
  ASSERT_EQ(result.courses.size(), 4U) << "each order is a search of its own";
  for (const SearchCourse& course : result.courses) {
    ASSERT_FALSE(course.points.empty());
    for (std::size_t i = 1; i < course.points.size(); ++i) {
      const CoursePoint& before = course.points[i - 1];
      const CoursePoint& point = course.points[i];
      EXPECT_GE(point.seconds, before.seconds);
      EXPECT_GE(point.evaluations, before.evaluations);
      EXPECT_FALSE(before.best && *before.best < *point.best) << "the best gets no worse";
    }
    const auto found =
        std::find_if(result.results.begin(), result.results.end(), [&](const RunResult& run) {
          return run.run.placer == course.run.placer && run.run.scheduler == course.run.scheduler;
        });
    ASSERT_NE(found, result.results.end());
    EXPECT_EQ(*course.points.back().best, found->evaluation);
    EXPECT_EQ(course.points.back().evaluations, found->evaluations);
  }
  request.keep_courses = false;
  EXPECT_THAT(Portfolio(problems, request).run().courses, IsEmpty());
}

TEST(Portfolio, status_is_a_line_of_what_is_done) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  Portfolio portfolio(problems, {.runs = make_runs("single,expert", "own")});
  EXPECT_EQ(portfolio.status().line(), "");
  portfolio.run();
  EXPECT_THAT(portfolio.status().line(), AllOf(HasSubstr("[2/2] expert"), HasSubstr("111.0 us"),
                                               HasSubstr("bound 110.0 us"), HasSubstr("gap 0.9")));
}

TEST(Portfolio, status_of_runs_that_are_compared_is_of_the_run_under_way) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  Portfolio portfolio(problems,
                      {.runs = make_runs("expert,single", "own"), .time_for = TimeFor::kEachRun});
  portfolio.run();
  EXPECT_THAT(portfolio.status().line(),
              AllOf(HasSubstr("[2/2] single   best 210.0 us"), HasSubstr("best of all 111.0 us")));
}

TEST(Portfolio, what_takes_no_time_is_there_when_a_comparison_is_stopped) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  std::atomic<bool> cancelled = true;
  Budget budget;
  budget.cancelled = &cancelled;
  const PortfolioResult compared =
      run(problems, "auto,single,expert", budget, TimeFor::kEachRun, "own");
  std::vector<PlacerRun> runs;
  for (const RunResult& one : compared.results) runs.push_back(one.run);
  EXPECT_THAT(names(runs), ElementsAre("expert own 1", "single own 1"));
}

TEST(KeepBestOrders, keeps_one_of_each_placer_and_seed) {
  const auto result = [](const char* placer, const char* scheduler, std::uint64_t seed) {
    RunResult one;
    one.run = {MethodSpec::parse(placer), scheduler, seed};
    return one;
  };
  std::vector<RunResult> results{result("random", "pct", 1), result("heft", "own", 1),
                                 result("random", "own", 1), result("random", "own", 2),
                                 result("heft(insertion=false)", "own", 1)};
  keep_best_orders(results);
  std::vector<PlacerRun> kept;
  for (const RunResult& one : results) kept.push_back(one.run);
  EXPECT_THAT(names(kept), ElementsAre("random pct 1", "heft own 1", "random own 2",
                                       "heft(insertion=false) own 1"));
}

TEST(AssessorOf, takes_the_highest_bound_that_is_known) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {});
  PortfolioResult found = run(problems, "expert");
  const auto bound = [&] {
    return assess(assessor_of(problems, found), problems, found.best()).bound;
  };
  EXPECT_EQ(bound().step, kForkBound) << "known before any search";
  found.results[0].bound = {kForkOnTwo, "a proof"};
  EXPECT_EQ(bound().step, kForkOnTwo);
  EXPECT_EQ(bound().reason, "a proof");
}

TEST(QuickSplits, are_nothing_for_one_device) {
  const auto simulator = [](int devices) {
    return std::make_shared<const Simulator>(fork_on(gpu_cluster(devices)));
  };
  EXPECT_THAT(quick_splits(simulator(1), {}), IsEmpty());
  EXPECT_EQ(quick_splits(simulator(2), {}).size(), 3U);
}

TEST(Portfolio, uses_cpus_only_where_the_rest_was_too_small) {
  const SubsetProblems problems(packing_problem(), {}, 0, {}, CpuUse::kIfNeeded);
  const auto on_cpu = [](const PortfolioResult& result) {
    const Placement& placement = result.best().result.placement;
    return std::count(placement.begin(), placement.end(), DeviceId{2});
  };
  const PortfolioResult single = run(problems, "single");
  EXPECT_TRUE(single.best().evaluation.fits());
  EXPECT_EQ(on_cpu(single), 5);
  const PortfolioResult exact = run(problems, "ip");
  EXPECT_TRUE(exact.best().evaluation.fits());
  EXPECT_EQ(on_cpu(exact), 0);
}

}  // namespace
}  // namespace emplace
