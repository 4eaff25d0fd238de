#include "run/search_checkpoint.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fingerprint.h"

#include "dist/crew.h"
#include "dist/local_transport.h"
#include "dist/member.h"
#include "dist/wire.h"
#include "run/portfolio.h"
#include "run/rank_messages.h"
#include "support/command.h"
#include "support/error_text.h"
#include "support/random_problem.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

class SearchCheckpointTest : public ::testing::Test {
 protected:
  SearchCheckpointTest() {
    Rng rng(3);
    problem_ = random_problem(rng, {.max_ops = 80, .roomy = true});
  }

  RunResult search(bool resume, std::int64_t evaluations = 900, std::uint64_t seed = 1,
                   std::size_t islands = 3, const std::string& scheduler = "own") const {
    const SubsetProblems problems(problem_, StepTime{});
    PortfolioRequest request{.runs = make_runs("anneal", scheduler, seed),
                             .time_for = TimeFor::kAllRuns,
                             .learning = {.checkpoint = folder_.path("state"), .resume = resume},
                             .islands = islands};
    request.budget.evaluations = evaluations;
    return Portfolio(problems, std::move(request)).run().best();
  }

  testing::TemporaryFolder folder_;
  std::shared_ptr<const Problem> problem_;
};

TEST_F(SearchCheckpointTest, ASearchThatIsDoneHasNothingLeftToDo) {
  const RunResult first = search(false);
  const RunResult again = search(true);
  EXPECT_EQ(again.result.placement, first.result.placement);
  EXPECT_EQ(again.evaluation, first.evaluation);
  EXPECT_EQ(again.evaluations, first.evaluations);
}

// As many ranks as it was begun on may not be there any more.
TEST_F(SearchCheckpointTest, HasTheNumberOfIslandsWhereNobodyGivesOne) {
  const RunResult first = search(false);
  const RunResult again = search(true, 900, 1, 0);
  EXPECT_EQ(again.result.placement, first.result.placement);
  EXPECT_EQ(again.evaluations, first.evaluations);
  EXPECT_THAT(error_text([&] { search(true, 900, 1, 2); }), HasSubstr("3 islands; expected"));
}

TEST_F(SearchCheckpointTest, MoreEvaluationsAreGoneOnWith) {
  const RunResult first = search(false);
  const RunResult more = search(true, 2'700);
  EXPECT_GT(more.evaluations, 2'400);
  EXPECT_LE(more.evaluations, 3'000);
  EXPECT_LE(more.evaluation.step, first.evaluation.step);
  const RunResult again = search(true, 2'700);
  EXPECT_EQ(again.evaluations, more.evaluations);
  EXPECT_EQ(again.result.placement, more.result.placement);
  // There is nothing left of less.
  EXPECT_EQ(search(true, 1'000).evaluation, more.evaluation);
}

// Killed in its first round, say.
TEST_F(SearchCheckpointTest, WhatWasFoundBeforeARoundWasOverIsNotLost) {
  const SubsetProblems problems(problem_, StepTime{});
  const RunResult good = search(false, 5'000);
  folder_.shell("rm -f state");
  {
    const LearningSettings settings{.checkpoint = folder_.path("state")};
    const std::vector<PlacerRun> runs = make_runs("anneal", "own");
    SearchCheckpoint checkpoint(settings, problems, runs.front(), {.count = 3, .evaluations = 900});
    PlaceContext context(problem_);
    const SearchCheckpoint::Watch watch(checkpoint, 0, context);
    context.incumbent().offer({good.result.placement, good.result.schedule, good.evaluation, ""});
  }
  EXPECT_LE(search(true, 12).evaluation.step, good.evaluation.step);
}

// Else those that are ready first would search from nothing.
TEST_F(SearchCheckpointTest, OtherRanksAreToldOfItsBestWithTheirTasks) {
  const SubsetProblems problems(problem_, StepTime{});
  PortfolioRequest request{.runs = make_runs("anneal", "own"),
                           .time_for = TimeFor::kAllRuns,
                           .learning = {.checkpoint = folder_.path("state")}};
  request.budget.seconds = 0.2;
  const RunResult first = Portfolio(problems, request).run().best();
  constexpr dist::PostOptions patient{.pulse_seconds = 0.02, .lost_after = 60};
  dist::LocalRanks ranks(2);
  dist::Member other(ranks.take(1), patient, [] {});
  std::vector<Solution> told;
  std::thread serving([&] {
    other.serve(fingerprint(problems, request.runs, false),
                [&](dist::Reader& task, dist::Line&) -> std::string {
                  task.number<std::uint8_t>();  // of a sort
                  task.number<std::uint64_t>();
                  task.number<std::uint64_t>();
                  task.number<std::uint64_t>();  // the seed
                  task.number<std::int32_t>();
                  EXPECT_TRUE(task.flag());  // live
                  task.flag();
                  task.number<double>();
                  task.number<std::int64_t>();
                  take_bound(task);
                  for (auto left = task.number<std::uint64_t>(); left > 0; --left) {
                    told.push_back(take_solution(task, *problem_));
                  }
                  fail_input("that was all");
                });
  });
  dist::Crew crew(ranks.take(0), patient);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it is ready
  request.crew = &crew;
  request.learning.resume = true;
  request.budget.seconds = 0.5;
  Portfolio(problems, request).run();
  crew.dismiss();
  serving.join();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_LE(told.front().value.step, first.evaluation.step);
}

TEST_F(SearchCheckpointTest, AnotherKindOfBudgetIsRefused) {
  const SubsetProblems problems(problem_, StepTime{});
  const auto search_for = [&](double seconds, bool resume) {
    PortfolioRequest request{.runs = make_runs("anneal", "own"),
                             .time_for = TimeFor::kAllRuns,
                             .learning = {.checkpoint = folder_.path("state"), .resume = resume}};
    request.budget.seconds = seconds;
    Portfolio(problems, std::move(request)).run();
  };
  search_for(0.05, false);
  EXPECT_THAT(error_text([&] { search(true); }),
              HasSubstr("state: was written under a budget of time; expected one of evaluations"));
  folder_.shell("rm -f state");
  search(false);
  EXPECT_THAT(error_text([&] { search_for(0.05, true); }),
              HasSubstr("under a budget of evaluations; expected one of time"));
}

TEST_F(SearchCheckpointTest, IsNotReplacedUnlessItIsResumed) {
  search(false);
  EXPECT_THAT(error_text([&] { search(false); }), HasSubstr("exists; resume it"));
}

TEST_F(SearchCheckpointTest, AnotherSearchIsRefused) {
  search(false);
  EXPECT_THAT(error_text([&] { search(true, 900, 2); }), HasSubstr("seed 1 and 3 islands"));
  Rng rng(4);
  problem_ = random_problem(rng, {.max_ops = 80, .roomy = true});
  EXPECT_THAT(error_text([&] { search(true); }), HasSubstr("of another model"));
}

TEST_F(SearchCheckpointTest, EveryTruncationIsRefused) {
  search(false);
  const std::string whole = folder_.read("state");
  for (std::size_t size = 1; size < whole.size(); size += 1 + whole.size() / 97) {
    folder_.write("state", whole.substr(0, size));
    EXPECT_THAT(error_text([&] { search(true); }), HasSubstr(folder_.path("state"))) << size;
  }
}

TEST_F(SearchCheckpointTest, AllDamageIsRefused) {
  search(false);
  const std::string whole = folder_.read("state");
  Rng rng(5);
  for (int trial = 0; trial < 120; ++trial) {
    std::string damaged = whole;
    const auto at = static_cast<std::size_t>(rng.below(whole.size()));
    // One byte, or eight as a length, a time or a count.
    if (trial % 2 == 0) {
      damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(1 + rng.below(255)));
    } else {
      damaged.replace(at, 8, std::string(8, trial % 4 == 1 ? '\xff' : '\x7f'));
    }
    folder_.write("state", damaged);
    EXPECT_THAT(error_text([&] { search(true); }), HasSubstr(folder_.path("state"))) << trial;
  }
}

// Nothing may be known but that.
TEST_F(SearchCheckpointTest, ABoundAloneIsSavedWhenItIsRaised) {
  const SubsetProblems problems(problem_, StepTime{});
  const PlacerRun run;
  const LearningSettings settings{.checkpoint = folder_.path("state"), .checkpoint_seconds = 0.02};
  SearchCheckpoint checkpoint(settings, problems, run, {});
  PlaceContext context(problem_);
  const SearchCheckpoint::Watch watch(checkpoint, 0, context);
  const LowerBound bound{1, "a bound that is found late"};
  const auto is_saved = [&] {
    return std::filesystem::exists(folder_.path("state")) &&
           folder_.read("state").find(bound.reason) != std::string::npos;
  };
  context.incumbent().raise(bound);
  for (int i = 0; i < 500 && !is_saved(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(is_saved());
}

// As another version of the program, which computes something else, may have written it.
TEST_F(SearchCheckpointTest, ValuesAreNotTakenOnTrust) {
  for (const std::string scheduler : {"own", "pct", "best"}) {
    SCOPED_TRACE(scheduler);
    const auto go_on = [&] { return search(true, 900, 1, 3, scheduler); };
    folder_.shell("rm -f state");
    const RunResult first = search(false, 900, 1, 3, scheduler);
    EXPECT_EQ(go_on().evaluation, first.evaluation);
    std::string bytes = folder_.read("state");
    bytes.resize(bytes.size() - sizeof(std::uint64_t));
    const std::string claimed = dist::Writer().number(first.evaluation.step).take();
    const std::string other = dist::Writer().number(first.evaluation.step - 1).take();
    std::size_t at = bytes.find(claimed);
    ASSERT_NE(at, std::string::npos);
    for (; at != std::string::npos; at = bytes.find(claimed, at)) bytes.replace(at, 8, other);
    const std::uint64_t sum = Fingerprint().add(bytes).value();
    folder_.write("state", bytes + dist::Writer().number(sum).take());
    EXPECT_THAT(error_text(go_on), HasSubstr("which takes another time here"));
  }
}

// A checkpoint on other machines says nothing of these, though the times are the same.
TEST_F(SearchCheckpointTest, AnotherClusterIsRefused) {
  search(false);
  ClusterSpec spec = problem_->cluster().spec();
  spec.devices[0].memory = 1'000'000'000'000;
  problem_ = compile(std::make_shared<const Graph>(problem_->graph()),
                     std::make_shared<const Cluster>(std::move(spec)), problem_->compile_options());
  EXPECT_THAT(error_text([&] { search(true); }), HasSubstr("of another model, cluster"));
}

}  // namespace
}  // namespace emplace
