// What every placer promises (placer/placer.h), checked on every registered one.
#include <atomic>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "placer/placer.h"
#include "placer/run.h"

#include "placers/all.h"

#include "support/budgets.h"
#include "support/needed_options.h"
#include "support/random_problem.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

constexpr std::int64_t kPlacements = 60;

std::vector<std::string> placer_keys() {
  std::vector<std::string> keys;
  for (const MethodInfo* info : all_placers().list()) keys.push_back(info->key);
  return keys;
}

// What a placer does not run without, and smaller networks than people use where it has one: what
// is promised does not depend on their size, and hundreds of them are made here.
OptionValues options_for(const MethodInfo& info) {
  static const std::map<std::string, std::string> kSmall{
      {"width", "8"},    {"encoder_width", "8"}, {"sage_width", "8"}, {"hidden", "8"},
      {"pretrain", "3"}, {"epochs", "2"},        {"rounds", "2"},     {"heads", "2"}};
  OptionValues values = needed_options(info);
  if (info.family != "learned") return values;
  for (const OptionInfo& option : info.options) {
    if (const auto small = kSmall.find(option.name); small != kSmall.end()) {
      values.emplace_back(option.name, small->second);
    }
  }
  return values;
}

class PlacerConformance : public testing::TestWithParam<std::string> {
 protected:
  const MethodInfo& info() const { return all_placers().info(GetParam()); }

  // Networks and integer programs take far longer than the rest, and most placers that learn are
  // the same code.
  std::uint64_t random_problems(std::uint64_t usual) const {
    return info().family == "learned" || info().key == "ip" ? usual / 3 : usual;
  }

  PlaceResult place(const std::shared_ptr<const Problem>& problem, const Budget& budget,
                    std::uint64_t seed = 1) const {
    PlaceContext context(problem);
    return place(context, budget, seed);
  }

  PlaceResult place(PlaceContext& context, const Budget& budget, std::uint64_t seed) const {
    try {
      return all_placers()
          .make({GetParam(), options_for(info())})
          ->place(context, budget, Rng(seed));
    } catch (const std::exception& error) {
      throw std::runtime_error(
          fmt::format("{}, placing this:\n{}", error.what(), describe(context.problem(), {}, {})));
    }
  }

  // Libraries that placers call like to talk; what `--json` prints must stay one object.
  PlaceResult place_silently(const std::shared_ptr<const Problem>& problem,
                             std::uint64_t seed) const {
    PlaceResult result;
    std::string failure;
    testing::internal::CaptureStdout();
    try {
      result = place(problem, evaluations(kPlacements), seed);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    if (!failure.empty()) throw std::runtime_error(failure);
    return result;
  }

  void expect_refused(const OptionValues& options) const {
    try {
      all_placers().make({GetParam(), options});
      ADD_FAILURE() << GetParam() << " takes " << options[0].first << "=" << options[0].second;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOption) << error.what();
      EXPECT_NE(std::string(error.what()).find(options[0].first), std::string::npos)
          << "the message does not name the option: " << error.what();
    }
  }
};

void expect_valid(const Problem& problem, const PlaceResult& result, const std::string& name) {
  ASSERT_NO_THROW(check_placement(problem, result.placement)) << name;
  if (!result.schedule.fifo()) {
    ASSERT_EQ(result.schedule.priorities.size(), problem.num_ops()) << name;
  }
}

void expect_fits_or_says_so(const std::shared_ptr<const Problem>& problem,
                            const PlaceResult& result, const std::string& name) {
  const Timeline timeline = Simulator(problem).run(result.placement, result.schedule);
  if (timeline.fits()) return;
  EXPECT_FALSE(result.notes.empty()) << name << ": does not fit, and no note says so";
}

TEST_P(PlacerConformance, places_every_tiny_case_and_says_when_memory_is_short) {
  for (const TinyCase& tiny : tiny_cases()) {
    const PlaceResult result = place(tiny.problem, evaluations(kPlacements));
    expect_valid(*tiny.problem, result, tiny.name);
    ASSERT_FALSE(HasFatalFailure());
    expect_fits_or_says_so(tiny.problem, result, tiny.name);
  }
}

TEST_P(PlacerConformance, places_random_problems_with_pins_shards_views_and_little_memory) {
  for (std::uint64_t i = 0; i < random_problems(120); ++i) {
    Rng rng = Rng(1234).split(i);
    const auto problem = random_problem(rng, {.max_ops = 25});
    if (!problem->cluster().fully_linked()) continue;
    const PlaceResult result = place_silently(problem, i);
    const std::string name = fmt::format("random {}\n{}", i, describe(*problem, {}, {}));
    expect_valid(*problem, result, name);
    ASSERT_FALSE(HasFatalFailure());
    expect_fits_or_says_so(problem, result, name);
  }
}

// Whatever a placer thinks of orders, its answer is in the one that was asked for, and so is what
// it says of memory.
TEST_P(PlacerConformance, answers_in_the_order_of_the_scheduler_that_is_asked_for) {
  for (const SchedulerInfo& scheduler : schedulers()) {
    for (std::uint64_t i = 0; i < random_problems(20); ++i) {
      Rng rng = Rng(77).split(i);
      const auto problem = random_problem(rng, {.max_ops = 25});
      if (!problem->cluster().fully_linked()) continue;
      const auto run = [&] {
        PlaceContext context(problem);
        return run_placer(
            all_placers(), context,
            {.placer = {GetParam(), options_for(info())}, .scheduler = scheduler.key, .seed = i},
            evaluations(kPlacements));
      };
      const RunResult found = run();
      const std::string name = fmt::format("{} {}\n{}", scheduler.key, i,
                                           describe(*problem, found.result.placement, {}));
      const Schedule order = make_schedule(*problem, found.result.placement, scheduler.key);
      EXPECT_EQ(found.result.schedule.priorities, order.priorities) << name;
      EXPECT_EQ(found.evaluation, Evaluator(problem).evaluate(found.result.placement, order))
          << name;
      if (found.evaluation.fits()) {
        EXPECT_LE(found.bound.step, found.evaluation.step) << name;
      }
      expect_fits_or_says_so(problem, found.result, name);
      EXPECT_EQ(run().result.placement, found.result.placement) << name;
    }
  }
}

// Every problem has a device that may hold every op, so a placement that needs no link exists.
TEST_P(PlacerConformance, never_sends_a_tensor_where_there_is_no_link) {
  const std::uint64_t wanted = random_problems(60);
  std::uint64_t tried = 0;
  for (std::uint64_t i = 0; i < 1500 && tried < wanted; ++i) {
    Rng rng = Rng(4321).split(i);
    const auto problem = random_problem(rng, {.max_ops = 25});
    if (problem->cluster().fully_linked()) continue;
    ++tried;
    const PlaceResult result = place_silently(problem, i);
    expect_valid(*problem, result, fmt::format("random {}\n{}", i, describe(*problem, {}, {})));
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_EQ(tried, wanted);
}

TEST_P(PlacerConformance, gives_the_same_result_for_the_same_seed_in_every_thread) {
  std::vector<PlaceResult> alone;
  for (const TinyCase& tiny : tiny_cases()) {
    alone.push_back(place(tiny.problem, evaluations(kPlacements), 9));
  }
  constexpr std::size_t kThreads = 2;
  std::vector<std::vector<PlaceResult>> together(kThreads, std::vector<PlaceResult>(alone.size()));
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < alone.size(); ++i) {
        const std::size_t at = (i + thread * 7) % alone.size();
        together[thread][at] = place(tiny_cases()[at].problem, evaluations(kPlacements), 9);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < alone.size(); ++i) {
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      EXPECT_EQ(together[thread][i].placement, alone[i].placement) << tiny_cases()[i].name;
      EXPECT_EQ(together[thread][i].schedule.priorities, alone[i].schedule.priorities);
      EXPECT_EQ(together[thread][i].notes, alone[i].notes) << tiny_cases()[i].name;
    }
  }
}

TEST_P(PlacerConformance, returns_a_valid_placement_when_there_is_no_budget_at_all) {
  const std::atomic<bool> cancelled{true};
  Budget stopped;
  stopped.cancelled = &cancelled;
  Budget no_time;
  no_time.seconds = 0;
  for (const TinyCase& tiny : tiny_cases()) {
    for (const Budget& budget : {evaluations(0), evaluations(1), stopped, no_time}) {
      const PlaceResult result = place(tiny.problem, budget);
      expect_valid(*tiny.problem, result, tiny.name);
      ASSERT_FALSE(HasFatalFailure());
      expect_fits_or_says_so(tiny.problem, result, tiny.name);
    }
  }
}

// A placer may finish the round that it is in, and constructive ones need a handful to build.
TEST_P(PlacerConformance, stops_when_its_evaluations_are_spent) {
  constexpr std::int64_t kSlack = 32;
  for (const std::int64_t limit : {0, 100}) {
    for (const TinyCase& tiny : tiny_cases()) {
      PlaceContext context(tiny.problem);
      all_placers()
          .make({GetParam(), options_for(info())})
          ->place(context, evaluations(limit), Rng(1));
      EXPECT_LE(context.evaluations(), limit + kSlack) << tiny.name;
    }
  }
}

TEST_P(PlacerConformance, describes_itself) {
  EXPECT_FALSE(info().family.empty());
  EXPECT_FALSE(info().summary.empty());
  EXPECT_FALSE(info().reference.empty());
  EXPECT_EQ(info().summary.find('\n'), std::string::npos);
  for (const OptionInfo& option : info().options) {
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.range.empty()) << option.name;
  }
}

TEST_P(PlacerConformance, places_alike_with_its_options_left_out_and_with_their_defaults) {
  MethodSpec spec{GetParam(), {}};
  for (const OptionInfo& option : info().options) {
    ASSERT_NO_THROW(all_placers().make({GetParam(), {{option.name, option.default_value}}}))
        << option.name << "=" << option.default_value;
    spec.options.emplace_back(option.name, option.default_value);
  }
  for (auto& [name, value] : spec.options) {
    for (const auto& [needed, given] : needed_options(info())) {
      if (name == needed) value = given;
    }
  }
  EXPECT_EQ(MethodSpec::parse(spec.to_string()).options, spec.options);
  const auto& problem = tiny_case("training_step_on_three_unequal").problem;
  PlaceContext context(problem);
  const PlaceResult spelled_out =
      all_placers().make(spec)->place(context, evaluations(kPlacements), Rng(1));
  PlaceContext another(problem);
  const PlaceResult left_out = all_placers()
                                   .make({GetParam(), needed_options(info())})
                                   ->place(another, evaluations(kPlacements), Rng(1));
  EXPECT_EQ(spelled_out.placement, left_out.placement);
}

TEST_P(PlacerConformance, refuses_values_outside_an_options_range) {
  for (const OptionInfo& option : info().options) {
    if (option.type == "text") continue;  // anything goes
    expect_refused({{option.name, ""}});
    expect_refused({{option.name, "no such value"}});
    if (option.type == "flag" || option.type == "choice") continue;
    expect_refused({{option.name, "nan"}});
    const std::size_t split = option.range.find(" to ");
    ASSERT_NE(split, std::string::npos) << option.name << ": " << option.range;
    const std::string low = option.range.substr(0, split);
    const std::string high = option.range.substr(split + 4);
    const double below = std::strtod(low.c_str(), nullptr) - 1;
    const double above = std::strtod(high.c_str(), nullptr) * 2 + 1;
    expect_refused({{option.name, fmt::format("{:.0f}", below)}});
    expect_refused({{option.name, fmt::format("{:.0f}", above)}});
  }
}

TEST_P(PlacerConformance, refuses_options_that_it_does_not_have) {
  expect_refused({{"no_such_option", "1"}});
}

INSTANTIATE_TEST_SUITE_P(AllPlacers, PlacerConformance, testing::ValuesIn(placer_keys()),
                         [](const auto& param_info) { return param_info.param; });

TEST(PlacerRegistry, refuses_a_placer_that_does_not_exist) {
  for (const std::string& key : placer_keys()) {
    try {
      all_placers().make({key + "x", {}});
      ADD_FAILURE() << "there is a placer " << key << "x";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOption);
      EXPECT_NE(std::string(error.what()).find("'" + key + "'"), std::string::npos)
          << "the nearest key is not named: " << error.what();
    }
  }
}

}  // namespace
}  // namespace emplace
