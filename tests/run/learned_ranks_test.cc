// Placers that learn over several ranks, which are threads here.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/local_transport.h"
#include "run/portfolio.h"
#include "run/rank_messages.h"
#include "run/rank_valuers.h"
#include "run/team_valuers.h"
#include "support/random_problem.h"

namespace emplace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr dist::PostOptions kHasty{.pulse_seconds = 0.02, .lost_after = 2};

std::shared_ptr<const Problem> problem_to_learn() {
  Rng rng(11);
  for (;;) {
    auto problem = random_problem(rng, {.max_ops = 80, .max_devices = 4, .roomy = true});
    if (problem->num_groups() > 40 && problem->num_devices() > 2) return problem;
  }
}

PortfolioRequest learning_request(const std::string& placer, const Budget& budget,
                                  dist::Crew* crew) {
  return {.runs = make_runs(placer, "own"),
          .budget = budget,
          .time_for = TimeFor::kAllRuns,
          .crew = crew,
          .least_shared_seconds = 0};
}

// Ranks 1, 2, ... that read the same problem.
class HelpingRanks {
 public:
  HelpingRanks(dist::LocalRanks& ranks, int size, const SubsetProblems& problems,
               const std::string& placer, const Budget& budget) {
    for (int rank = 1; rank < size; ++rank) {
      members_.push_back(std::make_unique<dist::Member>(ranks.take(rank), kHasty, [] {}));
      threads_.emplace_back([member = members_.back().get(), &problems, placer, budget] {
        Portfolio(problems, learning_request(placer, budget, nullptr)).serve(*member);
      });
    }
  }
  ~HelpingRanks() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::unique_ptr<dist::Member>> members_;
  std::vector<std::thread> threads_;
};

class LearnedRanks : public ::testing::Test {
 protected:
  std::vector<Placement> samples(int count) const {
    Rng rng(3);
    std::vector<Placement> placements;
    for (int i = 0; i < count; ++i) placements.push_back(random_placement(*problem_, rng));
    return placements;
  }

  void expect_valued(const std::vector<ValuedSample>& found,
                     const std::vector<Placement>& placements, bool with_starts) const {
    Evaluator evaluator(problem_);
    ASSERT_EQ(found.size(), placements.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const ValuedSample own = value_sample(evaluator, placements[i], with_starts, false);
      EXPECT_EQ(found[i].valid, own.valid);
      EXPECT_EQ(found[i].value, own.value);
      EXPECT_EQ(found[i].starts, own.starts);
    }
  }

  const std::shared_ptr<const Problem> problem_ = problem_to_learn();
  const SubsetProblems problems_{problem_, StepTime{}};
};

TEST_F(LearnedRanks, SamplesAreValuedAsHere) {
  dist::LocalRanks ranks(3);
  HelpingRanks others(ranks, 3, problems_, "hill_climb", {});
  dist::Crew crew(ranks.take(0), kHasty);
  PlaceContext context(problem_);
  RankValuers valuers(crew, 0, 0, context, /*least_seconds=*/0);
  for (const bool with_starts : {false, true}) {
    const std::vector<Placement> placements = samples(60);
    expect_valued(valuers.value(placements, with_starts, 1), placements, with_starts);
  }
  ranks.silence(2);
  const std::vector<Placement> placements = samples(200);
  expect_valued(valuers.value(placements, false, 1), placements, false);
  EXPECT_EQ(context.evaluations(), 0);  // whoever asks counts
  crew.dismiss();
  ranks.silence(2, false);
}

TEST_F(LearnedRanks, WhoeverValuesWronglyIsLost) {
  dist::LocalRanks ranks(2);
  std::atomic<bool> asked{false};
  dist::Member liar(ranks.take(1), kHasty, [] {});
  std::thread lying([&] {
    liar.serve(7, [&](dist::Reader& task, dist::Line&) {
      asked = true;
      EXPECT_EQ(task.number<std::uint8_t>(), static_cast<std::uint8_t>(RankTask::kSamples));
      task.number<std::uint64_t>();
      task.number<std::uint64_t>();
      task.flag();
      const auto count = task.number<std::uint64_t>();
      dist::Writer writer;
      for (std::uint64_t i = 0; i < count; ++i) {
        writer.flag(true);
        put(writer, Evaluation{1, 0});
        writer.numbers(std::vector<Nanoseconds>{});
      }
      return writer.take();
    });
  });
  dist::Crew crew(ranks.take(0), kHasty);
  PlaceContext context(problem_);
  RankValuers valuers(crew, 0, 0, context, 0);
  for (int i = 0; i < 200 && !asked; ++i) {
    const std::vector<Placement> placements = samples(200);
    expect_valued(valuers.value(placements, false, 1), placements, false);
  }
  EXPECT_TRUE(asked);
  EXPECT_THAT(crew.take_notes(), ElementsAre(HasSubstr("another time here")));
  crew.dismiss();
  lying.join();
}

// Ranks 1 and 2 are the workers of rank 0, until they are told to leave.
class Workers : public LearnedRanks {
 protected:
  Workers() {
    for (int i = 0; i < 2; ++i) {
      members_.push_back(std::make_unique<dist::Member>(ranks_.take(i + 1), kHasty, [] {}));
      services_.push_back(std::make_unique<SampleService>(
          *members_.back(),
          [this, i](const SampleQuestion& question) -> Evaluator& {
            if (question.run != 4 || question.problem != 5) fail_input("there is no such problem");
            ++asked_[i];
            std::this_thread::sleep_for(std::chrono::milliseconds(pause_[i]));
            return evaluators_[i];
          },
          1));
      threads_.emplace_back([member = members_.back().get()] { member->wait(); });
    }
  }
  ~Workers() override {
    crew_.dismiss();
    for (int rank : {1, 2}) ranks_.silence(rank, false);
    for (std::thread& thread : threads_) thread.join();
    services_.clear();
  }

  std::array<std::atomic<int>, 2> asked_{};
  std::array<std::atomic<int>, 2> pause_{};  // milliseconds
  Evaluator evaluators_[2] = {Evaluator(problem_), Evaluator(problem_)};
  dist::LocalRanks ranks_{3};
  dist::Crew crew_{ranks_.take(0), kHasty};
  std::vector<std::unique_ptr<dist::Member>> members_;
  std::vector<std::unique_ptr<SampleService>> services_;
  std::vector<std::thread> threads_;
  PlaceContext context_{problem_};
};

TEST_F(Workers, ValueSamplesAsTheirControllerDoes) {
  TeamValuers valuers(crew_, 4, 5, context_, /*least_seconds=*/0);
  const std::vector<Placement> placements = samples(300);
  expect_valued(valuers.value(placements, false, 1), placements, false);
  EXPECT_EQ(asked_[0] + asked_[1], 0);  // none was chosen
  valuers.choose({1, 2});
  for (const bool with_starts : {false, true}) {
    expect_valued(valuers.value(placements, with_starts, 1), placements, with_starts);
  }
  EXPECT_GT(asked_[0], 0);
  EXPECT_GT(asked_[1], 0);
  EXPECT_EQ(context_.evaluations(), 0);  // whoever asks counts
  valuers.choose({2});
  const int before = asked_[0];
  expect_valued(valuers.value(placements, false, 1), placements, false);
  EXPECT_EQ(asked_[0], before);
  EXPECT_THROW(valuers.choose({3}), Error);
  EXPECT_THROW(valuers.choose({0}), Error);
}

TEST_F(Workers, AreNotWaitedFor) {
  TeamValuers valuers(crew_, 4, 5, context_, 0);
  valuers.choose({1, 2});
  ranks_.silence(1);
  pause_[1] = 4'000;
  const std::vector<Placement> placements = samples(100);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    expect_valued(valuers.value(placements, false, 1), placements, false);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(seconds.count(), 3.5);
  EXPECT_EQ(asked_[1], 1);  // which it is still at
}

// Each run has valuers of its own, and a worker may still be at a question of the run before.
TEST_F(Workers, LateAnswersAreNotTakenForThoseOfAnotherRun) {
  const std::vector<Placement> placements = samples(400);
  for (const Placement& placement : placements) {  // nothing that comes is a new best
    const Evaluation value = context_.evaluator().evaluate_uncounted(placement);
    context_.incumbent().offer({placement, {}, value, "test"});
  }
  pause_[0] = 160;
  for (std::ptrdiff_t run = 0; run < 10; ++run) {
    TeamValuers valuers(crew_, 4, 5, context_, 0);
    valuers.choose({1});
    const std::vector<Placement> own(placements.begin() + 40 * run,
                                     placements.begin() + 40 * (run + 1));
    expect_valued(valuers.value(own, false, 1), own, false);
  }
  EXPECT_TRUE(crew_.present(1));
}

TEST_F(Workers, ForgetWhatNobodyWaitsForAnyMore) {
  pause_[0] = 2'000;
  TeamValuers valuers(crew_, 4, 5, context_, 0);
  valuers.choose({1});
  const std::vector<Placement> placements = samples(20);
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  while (seconds() < 5) expect_valued(valuers.value(placements, false, 1), placements, false);
  const int asked = asked_[0];
  std::this_thread::sleep_for(std::chrono::milliseconds(4'200));
  EXPECT_LE(asked_[0], asked + 1);  // else it works on questions of seconds ago
}

TEST_F(Workers, WithAnotherProblemLeaveItToTheController) {
  TeamValuers valuers(crew_, 0, 0, context_, 0);
  valuers.choose({1, 2});
  const std::vector<Placement> placements = samples(50);
  expect_valued(valuers.value(placements, false, 1), placements, false);
  EXPECT_EQ(asked_[0] + asked_[1], 0);
}

TEST_F(Workers, WhoLieAreLostAndNotBelieved) {
  TeamValuers valuers(crew_, 4, 5, context_, 0);
  valuers.choose({1});
  services_[0].reset();
  members_[0]->on_notes(dist::Topic::kSamples, [&](int from, dist::Reader& body) {
    ++asked_[0];
    dist::Writer writer;
    writer.number(body.number<std::uint64_t>());
    writer.number(body.number<std::uint64_t>());
    writer.flag(true);
    put(writer, Evaluation{1, 0});
    writer.numbers(std::vector<Nanoseconds>{});
    members_[0]->note(from, dist::Topic::kValues, writer.take());
  });
  const std::vector<Placement> placements = samples(6);  // each in a piece of its own
  for (int i = 0; i < 20 && crew_.present(1); ++i) {
    expect_valued(valuers.value(placements, false, 1), placements, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT(asked_[0], 0);
  EXPECT_FALSE(crew_.present(1));
  EXPECT_THAT(crew_.take_notes(), ElementsAre(HasSubstr("another time here")));
}

#ifdef EMPLACE_LEARN

class LearnedRuns : public LearnedRanks {
 protected:
  RunResult run_on(int size, const std::string& placer, const Budget& budget, int silenced = 0,
                   int after = 300) {
    if (size == 1)
      return Portfolio(problems_, learning_request(placer, budget, nullptr)).run().best();
    dist::LocalRanks ranks(size);
    HelpingRanks others(ranks, size, problems_, placer, budget);
    dist::Crew crew(ranks.take(0), kHasty);
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(after));
      for (int i = 0; i < silenced; ++i) ranks.silence(lose_[static_cast<std::size_t>(i)]);
    });
    RunResult best = Portfolio(problems_, learning_request(placer, budget, &crew)).run().best();
    killer.join();
    lost_ = crew.lost();
    crew.dismiss();
    return best;
  }

  static void expect_same(const RunResult& a, const RunResult& b) {
    EXPECT_EQ(a.result.placement, b.result.placement);
    EXPECT_EQ(a.evaluation, b.evaluation);
    EXPECT_EQ(a.evaluations, b.evaluations);
  }

  std::vector<int> lose_{1, 2};  // the first so many of them
  int lost_ = 0;
};

Budget limited_to(std::int64_t number) {
  Budget budget;
  budget.evaluations = number;
  return budget;
}

constexpr const char* kWorkers = "colocrl(controllers=2,workers=1,width=8,samples=5)";
constexpr const char* kControllers = "colocrl(controllers=3,width=8,samples=5)";

TEST_F(LearnedRuns, AnswerAsOneProcessUnderEvaluations) {
  for (const std::string placer :
       {"colocrl(width=8)", "placeto(units=8)", "post", kControllers,
        "hdp(controllers=2,width=8,samples=4)", kWorkers, "hdp(workers=1,width=8,samples=4)"}) {
    const RunResult alone = run_on(1, placer, limited_to(240));
    for (const int size : {2, 3, 5}) expect_same(run_on(size, placer, limited_to(240)), alone);
  }
}

TEST_F(LearnedRuns, AnswerTheSameWhenRanksAreLost) {
  // Of workers, too: rank 2 of 3 is a controller, rank 1 a worker.
  for (const std::string placer : {"colocrl(width=8)", kControllers, kWorkers}) {
    const RunResult alone = run_on(1, placer, limited_to(900));
    expect_same(run_on(3, placer, limited_to(900), 2, 150), alone);
    EXPECT_EQ(lost_, 2) << placer;
  }
}

TEST_F(LearnedRuns, ControllersGoOnWithoutLostRanksUnderTime) {
  Budget budget;
  budget.seconds = 5;
  const RunResult undisturbed = run_on(3, kControllers, budget);
  EXPECT_EQ(lost_, 0);
  EXPECT_GT(undisturbed.evaluations, 100);
  for (const char* placer : {kControllers, kWorkers}) {
    const RunResult disturbed = run_on(3, placer, budget.restarted(), 1, 1'500);
    EXPECT_EQ(lost_, 1);
    EXPECT_GT(disturbed.evaluations, 100);
    EXPECT_TRUE(disturbed.evaluation.fits());
  }
}

// The second team's controller is lost, and its worker takes its place, shard and all.
TEST_F(LearnedRuns, AWorkerBecomesTheController) {
  Budget budget;
  budget.seconds = 4;
  lose_ = {2};
  const RunResult disturbed = run_on(4, kWorkers, budget, 1, 1'000);
  EXPECT_EQ(lost_, 1);
  EXPECT_GT(disturbed.evaluations, 100);
  EXPECT_TRUE(disturbed.evaluation.fits());
}

#endif

}  // namespace
}  // namespace emplace
