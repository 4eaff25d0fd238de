// Searches over several ranks, which are threads here.
#include "run/islands.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/local_transport.h"
#include "run/exchange.h"
#include "run/portfolio.h"
#include "run/rank_messages.h"
#include "support/error_text.h"
#include "support/random_problem.h"

namespace emplace {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr dist::PostOptions kImpatient{.pulse_seconds = 0.02, .lost_after = 0.5};

std::shared_ptr<const Problem> some_problem() {
  Rng rng(11);
  for (;;) {
    auto problem = random_problem(rng, {.max_ops = 80, .max_devices = 4, .roomy = true});
    if (problem->num_groups() > 40 && problem->num_devices() > 2) return problem;
  }
}

PortfolioRequest request_of(const Budget& budget, dist::Crew* crew, std::size_t islands) {
  return {.runs = make_runs("anneal", "own"),
          .budget = budget,
          .time_for = TimeFor::kAllRuns,
          .crew = crew,
          .islands = islands};
}

// Ranks 1, 2, ... that read the same problem.
class OtherRanks {
 public:
  OtherRanks(dist::LocalRanks& ranks, int size, const SubsetProblems& problems,
             const Budget& budget) {
    for (int rank = 1; rank < size; ++rank) {
      members_.push_back(std::make_unique<dist::Member>(ranks.take(rank), kImpatient, [] {}));
      threads_.emplace_back([member = members_.back().get(), &problems, budget] {
        Portfolio(problems, request_of(budget, nullptr, 0)).serve(*member);
      });
    }
  }
  ~OtherRanks() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::unique_ptr<dist::Member>> members_;
  std::vector<std::thread> threads_;
};

RunResult search_on(int size, std::size_t islands, const Budget& budget, int silenced = 0) {
  const SubsetProblems problems(some_problem(), StepTime{});
  if (size == 1) return Portfolio(problems, request_of(budget, nullptr, islands)).run().best();
  dist::LocalRanks ranks(size);
  OtherRanks others(ranks, size, problems, budget);
  dist::Crew crew(ranks.take(0), kImpatient);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    for (int rank = 1; rank <= silenced; ++rank) ranks.silence(rank);
  });
  RunResult best = Portfolio(problems, request_of(budget, &crew, islands)).run().best();
  killer.join();
  crew.dismiss();
  return best;
}

TEST(Islands, DependOnTheSeedAndTheirNumberAlone) {
  Budget budget;
  budget.evaluations = 4'000;
  const RunResult alone = search_on(1, 6, budget);
  EXPECT_LE(alone.evaluations, 4'400);
  for (const int size : {2, 4}) {
    const RunResult shared = search_on(size, 6, budget);
    EXPECT_EQ(shared.result.placement, alone.result.placement) << size;
    EXPECT_EQ(shared.evaluation, alone.evaluation) << size;
    EXPECT_EQ(shared.evaluations, alone.evaluations) << size;
  }
}

TEST(Islands, GiveTheSameAnswerWhenRanksAreLost) {
  Budget budget;
  budget.evaluations = 4'000;
  const RunResult alone = search_on(1, 6, budget);
  EXPECT_EQ(search_on(4, 6, budget, 2).result.placement, alone.result.placement);
}

// Unless it was said how many: then the answer is that of one process.
TEST(Islands, AreFewerThanRanksWhereEachWouldBeShort) {
  Budget budget;
  budget.evaluations = 4'000;
  const RunResult alone = search_on(1, 0, budget);
  const RunResult shared = search_on(3, 0, budget);
  EXPECT_EQ(shared.result.placement, alone.result.placement);
  EXPECT_EQ(shared.evaluations, alone.evaluations);
}

// Rounds are parts of one search: all of them must come, however short the time.
TEST(Islands, ShareTheTimeAmongTheirRounds) {
  const auto problem = some_problem();
  Budget budget;
  budget.evaluations = 1'000'000'000;
  budget.seconds = 0.8;
  PlaceContext context(problem);
  const PlacerRun run{.placer = MethodSpec::parse("anneal")};
  std::vector<double> ends;
  IslandOptions options{.islands = 3, .on_round = [&](const IslandState&) {
                          ends.push_back(budget.elapsed_seconds());
                        }};
  budget = budget.restarted();
  run_islands({.run = &run, .context = &context, .budget = budget}, options);
  ASSERT_THAT(ends, SizeIs(4));
  EXPECT_GE(ends.front(), 0.1);  // each of the three had its turn
  EXPECT_LE(ends.front(), 0.6);
}

// Interrupts the run when it is asked for the n-th time.
class Interrupter final : public Placer {
 public:
  Interrupter(int& calls, std::atomic<bool>& cancelled) : calls_(calls), cancelled_(cancelled) {}
  PlaceResult place(PlaceContext& context, const Budget&, Rng) override {
    if (++calls_ == 5) cancelled_ = true;
    return {.placement = Placement(context.problem().num_ops(), 0)};
  }

 private:
  int& calls_;
  std::atomic<bool>& cancelled_;
};

// Whoever resumes it would else go on from half of a round.
TEST(Islands, HaveNotDoneARoundInWhichTheyWereInterrupted) {
  const auto problem = some_problem();
  PlaceContext context(problem);
  std::atomic<bool> cancelled{false};
  int calls = 0;
  PlacerRun run;
  run.make = [&] { return std::make_unique<Interrupter>(calls, cancelled); };
  Budget budget;
  budget.evaluations = 1'000;
  budget.cancelled = &cancelled;
  int rounds = 0;
  run_islands(
      {.run = &run, .context = &context, .budget = budget},
      {.islands = 3, .on_round = [&](const IslandState& state) { rounds = state.rounds_done; }});
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(rounds, 1);
}

TEST(Islands, AreTimedFromTheFirstRoundToTheLast) {
  const SubsetProblems problems(some_problem(), StepTime{});
  Budget budget;
  budget.evaluations = 20'000;
  PortfolioRequest request = request_of(budget, nullptr, 8);
  request.keep_courses = true;
  const PortfolioResult result = Portfolio(problems, std::move(request)).run();
  const std::vector<CoursePoint>& points = result.courses.front().points;
  ASSERT_GE(points.size(), 2U);
  EXPECT_EQ(points.back().seconds, result.best().seconds);
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_GE(points[i].seconds, points[i - 1].seconds) << i;
  }
}

class Scripted final : public Placer {
 public:
  using Body = std::function<void(PlaceContext&)>;
  explicit Scripted(const Body& body) : body_(body) {}
  PlaceResult place(PlaceContext& context, const Budget&, Rng) override {
    body_(context);
    return {.placement = Placement(context.problem().num_ops(), 0)};
  }

 private:
  const Body& body_;
};

// Rank i does what the i-th body says, wherever its tasks send it; the others are threads.
class ScriptedRanks : public ::testing::Test {
 protected:
  ScriptedRanks() {
    Rng rng(1);
    PlaceContext context(problem_);
    Placement placement(problem_->num_ops(), 0);
    const Evaluation usual = context.evaluator().evaluate(placement);
    do {
      placement = random_placement(*problem_, rng);
      good_ = {placement, {}, context.evaluator().evaluate(placement), "test"};
    } while (!(good_.value < usual));
  }

  bool knows(const PlaceContext& context) const {
    const std::optional<Evaluation> value = context.incumbent().value();
    return value && !(good_.value < *value);
  }
  template <class Condition>
  static bool comes(Condition condition) {
    for (int i = 0; i < 4'000 && !condition(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }

  RunResult search(const std::vector<Scripted::Body>& bodies, PlaceContext& context,
                   const Budget& budget, std::size_t islands = 0) {
    constexpr dist::PostOptions patient{.pulse_seconds = 0.02, .lost_after = 60};
    std::vector<PlacerRun> runs(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      runs[i].make = [&body = bodies[i]] { return std::make_unique<Scripted>(body); };
    }
    dist::LocalRanks ranks(static_cast<int>(bodies.size()));
    std::vector<std::unique_ptr<dist::Member>> members;
    std::vector<std::thread> threads;
    for (std::size_t rank = 1; rank < bodies.size(); ++rank) {
      members.push_back(
          std::make_unique<dist::Member>(ranks.take(static_cast<int>(rank)), patient, [] {}));
      threads.emplace_back([this, &run = runs[rank], member = members.back().get()] {
        member->serve(0, [&](dist::Reader& task, dist::Line& line) {
          task.number<std::uint8_t>();
          const FindIsland find = [&](std::size_t, std::size_t) {
            if (before_it_reads_) before_it_reads_();
            return IslandPlace{&run, std::make_unique<PlaceContext>(problem_)};
          };
          return do_island_task(task, line, find, 1);
        });
      });
    }
    dist::Crew crew(ranks.take(0), patient);
    RunResult result =
        run_islands({.run = &runs[0], .context = &context, .budget = budget.restarted()},
                    {.crew = &crew, .islands = islands});
    crew.dismiss();
    for (std::thread& thread : threads) thread.join();
    return result;
  }

  std::shared_ptr<const Problem> problem_ = some_problem();
  Solution good_;
  std::function<void()> before_it_reads_;
};

TEST_F(ScriptedRanks, UnderTimeEverybodyKnowsWhatAnyHasFound) {
  std::atomic<int> knowing{0};
  const Scripted::Body waits = [&](PlaceContext& context) {
    EXPECT_TRUE(comes([&] { return knows(context); }));
    ++knowing;
    EXPECT_TRUE(comes([&] { return knowing == 2; }));
  };
  const Scripted::Body finds = [&](PlaceContext& context) {
    context.incumbent().offer(good_);
    EXPECT_TRUE(comes([&] { return knowing == 2; }));
  };
  PlaceContext context(problem_);
  Budget budget;
  budget.seconds = 60;
  const RunResult result = search({waits, finds, waits}, context, budget);
  EXPECT_EQ(knowing, 2);
  EXPECT_EQ(result.evaluation, good_.value);
}

// As the best of a checkpoint: at once.
TEST_F(ScriptedRanks, UnderTimeEverybodyKnowsWhatTheFirstHasFoundBeforeTheyListen) {
  std::atomic<bool> found{false};
  std::atomic<bool> known{false};
  const Scripted::Body finds = [&](PlaceContext& context) {
    context.incumbent().offer(good_);
    found = true;
    EXPECT_TRUE(comes([&] { return known.load(); }));
  };
  const Scripted::Body waits = [&](PlaceContext& context) {
    known = comes([&] { return knows(context); });
  };
  before_it_reads_ = [&] {
    EXPECT_TRUE(comes([&] { return found.load(); }));
    // It has been told meanwhile.
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  };
  PlaceContext context(problem_);
  Budget budget;
  budget.seconds = 60;
  search({finds, waits}, context, budget);
  EXPECT_TRUE(known);
}

TEST_F(ScriptedRanks, UnderTimeTheirTasksSayWhatWasKnownBefore) {
  std::atomic<bool> begun{false};
  std::atomic<bool> known{false};
  const Scripted::Body waits = [&](PlaceContext&) { comes([&] { return begun.load(); }); };
  const Scripted::Body looks = [&](PlaceContext& context) {
    known = knows(context);
    begun = true;
  };
  PlaceContext context(problem_);
  context.incumbent().offer(good_);
  Budget budget;
  budget.seconds = 60;
  search({waits, looks}, context, budget);
  EXPECT_TRUE(known);
}

// For those who look at it, and for checkpoints.
TEST_F(ScriptedRanks, WhatARoundFindsHereIsKnownBeforeItIsOver) {
  PlaceContext whole(problem_);
  int rounds = 0;
  const Scripted::Body finds = [&](PlaceContext& own) {
    if (++rounds > 1) return;
    own.incumbent().offer(good_);
    own.incumbent().raise({1, "a bound"});
    EXPECT_TRUE(comes([&] { return knows(whole) && whole.incumbent().bound().step == 1; }));
  };
  PlacerRun run;
  run.make = [&] { return std::make_unique<Scripted>(finds); };
  Budget budget;
  budget.evaluations = 1'000;
  run_islands({.run = &run, .context = &whole, .budget = budget}, {.islands = 2});
  EXPECT_EQ(rounds, 8);
}

// But no other round: what it does must not depend on when that was.
TEST_F(ScriptedRanks, WhatARoundFindsElsewhereIsKnownBeforeItIsOver) {
  PlaceContext whole(problem_);
  std::atomic<bool> known{false};
  const Scripted::Body waits = [&](PlaceContext& own) {
    if (known) return;
    known = comes([&] { return knows(whole); });
    EXPECT_TRUE(known);
    EXPECT_FALSE(knows(own));
  };
  const Scripted::Body finds = [&](PlaceContext& own) {
    if (known) return;
    own.incumbent().offer(good_);
    EXPECT_TRUE(comes([&] { return known.load(); }));
  };
  Budget budget;
  budget.evaluations = 1'000;
  const RunResult result = search({waits, finds}, whole, budget, 2);
  // The rounds have ended with something else.
  EXPECT_NE(result.evaluation, good_.value);
}

// One that goes on under a larger budget, and is interrupted there.
TEST(Islands, EndAsIfNobodyHadInterruptedThemUnderAnotherBudget) {
  const auto problem = some_problem();
  const PlacerRun run{.placer = MethodSpec::parse("anneal")};
  Budget budget;
  std::vector<IslandState> states;
  const auto search = [&](const IslandState& resumed) {
    states.clear();
    PlaceContext context(problem);
    return run_islands({.run = &run, .context = &context, .budget = budget},
                       {.islands = 3,
                        .resumed = resumed,
                        .on_round = [&](const IslandState& state) { states.push_back(state); }});
  };
  budget.evaluations = 900;
  const RunResult first = search({});
  ASSERT_THAT(states, SizeIs(4));
  IslandState state = states.back();
  state.rounds_done = 0;
  state.evaluations_before = state.evaluations;
  budget.evaluations = 3'000;
  const RunResult whole = search(state);
  EXPECT_GT(whole.evaluations, 2'700);
  EXPECT_LE(whole.evaluations, 3'300);
  EXPECT_LE(whole.evaluation.step, first.evaluation.step);
  ASSERT_THAT(states, SizeIs(4));
  const IslandState second = states[1];
  const RunResult resumed = search(second);
  EXPECT_THAT(states, SizeIs(2));
  EXPECT_EQ(resumed.result.placement, whole.result.placement);
  EXPECT_EQ(resumed.evaluations, whole.evaluations);
  // Where next to nothing is left.
  state = second;
  state.rounds_done = 0;
  state.evaluations_before = 2'995;
  const RunResult rest = search(state);
  EXPECT_THAT(states, SizeIs(0));
  EXPECT_EQ(rest.evaluations, second.evaluations);
}

class ExchangeTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Problem> problem_ = some_problem();
};

TEST_F(ExchangeTest, WhatOneFindsTheOtherHears) {
  PlaceContext a(problem_);
  PlaceContext b(problem_);
  NewsExchange to_b(b, NewsExchange::To::kFirst, [](const std::string&) {});
  std::vector<std::string> told;
  NewsExchange from_a(a, NewsExchange::To::kOthers,
                      [&](std::string news) { told.push_back(news); });
  Rng rng(1);
  const Placement placement = random_placement(*problem_, rng);
  a.incumbent().offer({placement, {}, a.evaluator().evaluate(placement), "test"});
  from_a.tick();
  ASSERT_THAT(told, SizeIs(1));
  dist::Reader news(told.front());
  to_b.hear(news);
  EXPECT_EQ(b.incumbent().value(), a.incumbent().value());
  EXPECT_EQ(b.evaluations(), 0);  // checking it costs the search nothing
}

TEST_F(ExchangeTest, WhatMakesNoSenseIsRefused) {
  PlaceContext a(problem_);
  NewsExchange exchange(a, NewsExchange::To::kOthers, [](const std::string&) {});
  Rng rng(1);
  const Placement placement = random_placement(*problem_, rng);
  const auto hear = [&](const Solution& solution, const LowerBound& bound) {
    dist::Writer writer;
    writer.flag(true);
    put(writer, solution, *problem_);
    put(writer, bound);
    const std::string bytes = writer.take();
    return error_text([&] {
      dist::Reader reader(bytes);
      exchange.hear(reader);
    });
  };
  const Evaluation value = a.evaluator().evaluate(placement);
  Evaluation wrong = value;
  --wrong.step;
  EXPECT_THAT(hear({placement, {}, wrong, ""}, {}), HasSubstr("takes another time here"));
  EXPECT_THAT(hear({Placement(3), {}, value, ""}, {}), HasSubstr("a placement is of 3 ops"));
  Placement beyond = placement;
  beyond[0] = problem_->num_devices();
  EXPECT_THAT(hear({beyond, {}, value, ""}, {}), HasSubstr("uses device"));
  EXPECT_EQ(hear({placement, {}, value, ""}, {}), "");
  if (value.fits()) {
    EXPECT_THAT(hear({placement, {}, value, ""}, {value.step + 1, "a lie"}),
                HasSubstr("is above a placement"));
  }
}

}  // namespace
}  // namespace emplace
