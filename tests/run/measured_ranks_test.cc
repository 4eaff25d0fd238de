// Samples that several ranks measure, each on devices of its own. Ranks are threads here, and what
// they measure says which of them it was.
#include <atomic>
#include <chrono>
#include <mutex>
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

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr dist::PostOptions kQuickToLose{.pulse_seconds = 0.02, .lost_after = 2};
constexpr Nanoseconds kOfRank0 = 1'000'000;

std::shared_ptr<const Problem> problem_to_measure() {
  Rng rng(11);
  for (;;) {
    auto problem = random_problem(rng, {.max_ops = 80, .max_devices = 4, .roomy = true});
    if (problem->num_groups() > 40 && problem->num_devices() > 2) return problem;
  }
}

// Of one rank: what takes a while, and one at a time.
struct Bench {
  int rank = 0;
  std::atomic<int> steps{0};
  std::atomic<int> failures{0};
  std::chrono::milliseconds pause{5};
  const std::atomic<bool>* stopped = nullptr;
  std::atomic<bool> busy{false};
  std::atomic<bool> overlapped{false};

  Evaluator::Measure measure() {
    return [this](const Placement& placement, const ReadyOrder&) {
      if (busy.exchange(true)) overlapped = true;
      ++steps;
      const auto end = std::chrono::steady_clock::now() + pause;
      while (std::chrono::steady_clock::now() < end && (stopped == nullptr || !*stopped)) {
        std::this_thread::sleep_for(1ms);
      }
      busy = false;
      if (placement.front() != 0) return Evaluation{.step = kOfRank0 * (rank + 1)};
      ++failures;
      return Evaluation{.step = 1, .overflow = 7};
    };
  }
};

class MeasuredRanks : public ::testing::Test {
 protected:
  static constexpr int kMost = 4;

  MeasuredRanks() {
    for (int rank = 0; rank < kMost; ++rank) benches_[rank].rank = rank;
  }

  PortfolioRequest request(int rank, const std::string& placer, const Budget& budget,
                           dist::Crew* crew) {
    return {.runs = make_runs(placer, "own"),
            .budget = budget,
            .time_for = TimeFor::kAllRuns,
            .measure = benches_[rank].measure(),
            .crew = crew};
  }

  // Ranks 1, 2, ...
  void start_others(int size, const std::string& placer, const Budget& budget = {}) {
    ranks_ = std::make_unique<dist::LocalRanks>(size);
    for (int rank = 1; rank < size; ++rank) {
      members_.push_back(std::make_unique<dist::Member>(ranks_->take(rank), kQuickToLose, [] {}));
      benches_[rank].stopped = &members_.back()->stopped();
      threads_.emplace_back([this, rank, placer, budget, member = members_.back().get()] {
        Portfolio(problems_, request(rank, placer, budget, nullptr)).serve(*member);
      });
    }
    crew_ = std::make_unique<dist::Crew>(ranks_->take(0), kQuickToLose);
    context_.measure_with(benches_[0].measure());
  }
  void end() {
    if (!crew_) return;
    crew_->dismiss();
    for (int rank = 1; rank <= static_cast<int>(members_.size()); ++rank) {
      ranks_->silence(rank, false);
    }
    for (std::thread& thread : threads_) thread.join();
    crew_.reset();
  }
  ~MeasuredRanks() override {
    end();
    for (const Bench& bench : benches_) EXPECT_FALSE(bench.overlapped) << bench.rank;
  }

  std::vector<Placement> samples(int count) const {
    Rng rng(3);
    std::vector<Placement> placements;
    for (int i = 0; i < count; ++i) placements.push_back(random_placement(*problem_, rng));
    return placements;
  }

  int steps(int size) const {
    int all = 0;
    for (int rank = 0; rank < size; ++rank) all += benches_[rank].steps;
    return all;
  }

  // Which rank has measured it.
  static int rank_of(const ValuedSample& sample) {
    return static_cast<int>(sample.value.step / kOfRank0) - 1;
  }

  void expect_measured(const std::vector<ValuedSample>& found,
                       const std::vector<Placement>& placements, int size) const {
    ASSERT_EQ(found.size(), placements.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i].valid);
      EXPECT_EQ(found[i].value.fits(), placements[i].front() != 0);
      if (!found[i].value.fits()) continue;
      EXPECT_EQ(found[i].value.step % kOfRank0, 0);
      EXPECT_GE(rank_of(found[i]), 0);
      EXPECT_LT(rank_of(found[i]), size);
    }
  }

  const std::shared_ptr<const Problem> problem_ = problem_to_measure();
  const SubsetProblems problems_{problem_, StepTime{}};
  PlaceContext context_{problem_};
  Bench benches_[kMost];
  std::unique_ptr<dist::LocalRanks> ranks_;
  std::unique_ptr<dist::Crew> crew_;
  std::vector<std::unique_ptr<dist::Member>> members_;
  std::vector<std::thread> threads_;
};

TEST_F(MeasuredRanks, MeasureEachSampleOnce) {
  start_others(3, "post");
  RankValuers valuers(*crew_, 0, 0, context_, /*least_seconds=*/1e9);  // however long it takes
  const std::vector<Placement> placements = samples(60);
  expect_measured(valuers.value(placements, false, 8), placements, 3);
  EXPECT_EQ(steps(3), 60);
  for (int rank = 0; rank < 3; ++rank) EXPECT_GE(benches_[rank].steps, 10) << rank;
  // When ops start is simulated, where that is asked for.
  const std::vector<ValuedSample> with_starts = valuers.value(placements, true, 8);
  expect_measured(with_starts, placements, 3);
  for (const ValuedSample& sample : with_starts) {
    EXPECT_EQ(sample.starts.size(), problem_->num_ops());
  }
  EXPECT_EQ(context_.evaluations(), 0);  // whoever asks counts
}

TEST_F(MeasuredRanks, WhatALostOneHadIsMeasuredAgain) {
  start_others(3, "post");
  RankValuers valuers(*crew_, 0, 0, context_, 0);
  expect_measured(valuers.value(samples(30), false, 1), samples(30), 3);
  EXPECT_GT(benches_[2].steps, 0);
  std::thread killer([&] {
    std::this_thread::sleep_for(40ms);
    ranks_->silence(2);
  });
  benches_[2].pause = 60ms;  // one is under way then
  const std::vector<Placement> placements = samples(100);
  const int before = steps(3);
  expect_measured(valuers.value(placements, false, 1), placements, 3);
  killer.join();
  EXPECT_EQ(crew_->lost(), 1);
  EXPECT_GE(steps(3) - before, 100);
  EXPECT_LE(steps(3) - before, 101);
}

TEST_F(MeasuredRanks, WhoeverMeasuresNoTimeIsLost) {
  ranks_ = std::make_unique<dist::LocalRanks>(2);
  dist::Member liar(ranks_->take(1), kQuickToLose, [] {});
  std::thread lying([&] {
    liar.serve(7, [&](dist::Reader&, dist::Line&) {
      dist::Writer writer;
      writer.flag(true);
      put(writer, Evaluation{0, 0});
      return writer.numbers(std::vector<Nanoseconds>{}).take();
    });
  });
  {
    dist::Crew crew(ranks_->take(0), kQuickToLose);
    context_.measure_with(benches_[0].measure());
    RankValuers valuers(crew, 0, 0, context_, 0);
    const std::vector<Placement> placements = samples(40);
    expect_measured(valuers.value(placements, false, 1), placements, 1);
    EXPECT_THAT(crew.take_notes(), ElementsAre(HasSubstr("a step of 0 ns")));
  }
  lying.join();
}

TEST_F(MeasuredRanks, NobodyWaitsForWhatIsCancelled) {
  start_others(3, "post");
  std::atomic<bool> cancelled{false};
  benches_[0].stopped = &cancelled;
  for (Bench& bench : benches_) bench.pause = 60'000ms;
  Budget budget;
  budget.cancelled = &cancelled;
  RankValuers valuers(*crew_, 0, 0, context_, 0, budget);
  std::thread canceller([&] {
    std::this_thread::sleep_for(300ms);
    cancelled = true;
  });
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<ValuedSample> found = valuers.value(samples(20), true, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  canceller.join();
  ASSERT_EQ(found.size(), 20U);
  int given_up = 0;
  for (const ValuedSample& sample : found) {
    given_up += sample.valid ? 0 : 1;
    EXPECT_EQ(sample.starts.size(), problem_->num_ops());
  }
  EXPECT_GE(given_up, 17);
}

TEST_F(MeasuredRanks, TimeIsKept) {
  start_others(2, "post");
  benches_[0].pause = 20ms;
  benches_[1].pause = 60'000ms;
  Budget budget;
  budget.seconds = 0.5;
  RankValuers valuers(*crew_, 0, 0, context_, 0, budget);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(valuers.value(samples(1000), false, 1).size(), 1000U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  EXPECT_LT(steps(2), 100);
}

TEST_F(MeasuredRanks, MeasureForTheirController) {
  start_others(3, "post");
  // Whoever serves has a service for those who ask past rank 0.
  TeamValuers valuers(*crew_, 0, 0, context_, 0);
  valuers.choose({1, 2});
  const std::vector<Placement> placements = samples(60);
  // Who is asked before it listens is asked again after a second.
  const auto end = std::chrono::steady_clock::now() + 30s;
  while ((benches_[1].steps == 0 || benches_[2].steps == 0) &&
         std::chrono::steady_clock::now() < end) {
    expect_measured(valuers.value(placements, false, 8), placements, 3);
  }
  for (Bench& bench : benches_) bench.steps = 0;
  expect_measured(valuers.value(placements, false, 8), placements, 3);
  for (int rank = 0; rank < 3; ++rank) EXPECT_GE(benches_[rank].steps, 5) << rank;
}

TEST_F(MeasuredRanks, GiveUpForTheirControllerToo) {
  start_others(2, "post");
  std::atomic<bool> cancelled{false};
  benches_[0].stopped = &cancelled;
  for (Bench& bench : benches_) bench.pause = 60'000ms;
  Budget budget;
  budget.cancelled = &cancelled;
  std::thread canceller([&] {
    std::this_thread::sleep_for(300ms);
    cancelled = true;
  });
  const auto begin = std::chrono::steady_clock::now();
  {
    TeamValuers valuers(*crew_, 0, 0, context_, 0, budget);
    valuers.choose({1});
    EXPECT_EQ(valuers.value(samples(20), false, 1).size(), 20U);
  }
  end();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  canceller.join();
}

#ifdef EMPLACE_LEARN

TEST_F(MeasuredRanks, LearnTogether) {
  for (const std::string placer :
       {"colocrl(width=8,samples=6,polish=false)",
        "colocrl(width=8,samples=6,polish=false,controllers=3)",
        "colocrl(width=8,samples=6,polish=false,controllers=2,workers=1)"}) {
    for (const bool timed : {false, true}) {
      Budget budget;
      if (timed) {
        budget.seconds = 2;
      } else {
        budget.evaluations = 60;
      }
      for (Bench& bench : benches_) bench.steps = 0;
      start_others(3, placer, budget);
      const RunResult best =
          Portfolio(problems_, request(0, placer, budget, crew_.get())).run().best();
      EXPECT_EQ(crew_->lost(), 0);
      EXPECT_EQ(best.evaluation.step % kOfRank0, 0) << placer;
      EXPECT_TRUE(best.evaluation.fits()) << placer;
      EXPECT_GE(steps(3), 60) << placer;
      // Who is asked before it listens is asked again after a second.
      for (int rank = 0; timed && rank < 3; ++rank) {
        EXPECT_GT(benches_[rank].steps, 1) << placer << rank;
      }
      end();
      threads_.clear();
      members_.clear();
    }
  }
}

TEST_F(MeasuredRanks, OneProcessKeepsItsTimeToo) {
  benches_[0].pause = 20ms;
  Budget budget;
  budget.seconds = 0.5;
  const auto begin = std::chrono::steady_clock::now();
  Portfolio(problems_, request(0, "colocrl(width=8,samples=500,polish=false)", budget, nullptr))
      .run();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
}

// Steps may take less than any that are simulated: that proves nothing.
TEST_F(MeasuredRanks, WhatIsQuickerThanSimulatedEndsNoSearch) {
  Budget budget;
  budget.evaluations = 60;
  PortfolioRequest wanted = request(0, "colocrl(width=8,samples=6,polish=false)", budget, nullptr);
  std::atomic<int> steps{0};
  wanted.measure = [&](const Placement&, const ReadyOrder&) {
    ++steps;
    return Evaluation{.step = 1};
  };
  ASSERT_GT(problems_.bound().step, 1);
  EXPECT_EQ(Portfolio(problems_, std::move(wanted)).run().best().evaluations, 60);
  EXPECT_GE(steps, 60);
}

// The answer cannot be executed once more then.
TEST_F(MeasuredRanks, InterruptedOnesHaveWhatTheyHaveMeasured) {
  std::atomic<bool> cancelled{false};
  std::atomic<int> left{20};
  PortfolioRequest wanted = request(0, "post(polish=false)", {}, nullptr);
  wanted.budget.cancelled = &cancelled;
  wanted.budget.evaluations = 1000;
  wanted.measure = [&](const Placement&, const ReadyOrder&) {
    if (--left < 0) cancelled = true;
    if (cancelled) return Evaluation{.step = 1, .overflow = 1};
    return Evaluation{.step = kOfRank0};
  };
  const RunResult best = Portfolio(problems_, std::move(wanted)).run().best();
  EXPECT_TRUE(best.evaluation.fits());
  EXPECT_EQ(best.evaluation.step, kOfRank0);
}

// Whoever is asked for something else has not the same task.
TEST_F(MeasuredRanks, DoNotMixWithThoseThatSimulate) {
  ranks_ = std::make_unique<dist::LocalRanks>(2);
  dist::Member member(ranks_->take(1), kQuickToLose, [] {});
  Budget budget;
  budget.evaluations = 60;
  std::thread simulates([&] {
    PortfolioRequest own = request(1, "post(polish=false)", budget, nullptr);
    own.measure = {};
    Portfolio(problems_, std::move(own)).serve(member);
  });
  {
    dist::Crew crew(ranks_->take(0), kQuickToLose);
    Portfolio portfolio(problems_, request(0, "post(polish=false)", budget, &crew));
    try {
      portfolio.run();
      ADD_FAILURE() << "it was not noticed";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is asked for something else"));
    }
  }
  simulates.join();
}

#endif

}  // namespace
}  // namespace emplace
