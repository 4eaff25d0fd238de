#include "search/incumbent.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/context.h"

namespace emplace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Score {
  Nanoseconds step = 0;
  bool fitting = true;

  bool fits() const { return fitting; }
  friend bool operator<(const Score& a, const Score& b) {
    return a.fitting != b.fitting ? a.fitting : a.step < b.step;
  }
  friend bool operator==(const Score&, const Score&) = default;
};

struct Tour {
  std::string name;
  Score value;
};

using TourIncumbent = BasicIncumbent<Tour>;

Tour tour(const std::string& name, Nanoseconds step, bool fits = true) {
  return {name, {step, fits}};
}

TEST(Incumbent, keeps_what_is_better_alone) {
  TourIncumbent incumbent;
  EXPECT_FALSE(incumbent.best());
  EXPECT_FALSE(incumbent.value());
  EXPECT_TRUE(incumbent.offer(tour("short but too large", 1, false)));
  EXPECT_TRUE(incumbent.offer(tour("first", 10)));
  EXPECT_FALSE(incumbent.offer(tour("as good", 10))) << "the first of equals stays";
  EXPECT_FALSE(incumbent.offer(tour("worse", 11)));
  EXPECT_EQ(incumbent.best()->name, "first");
  EXPECT_TRUE(incumbent.offer(tour("better", 9)));
  EXPECT_EQ(incumbent.best()->name, "better");
  EXPECT_EQ(incumbent.value(), (Score{9, true}));
}

TEST(Incumbent, version_changes_with_the_best_alone) {
  TourIncumbent incumbent;
  const auto empty = incumbent.version();
  incumbent.offer(tour("a", 10));
  const auto first = incumbent.version();
  EXPECT_NE(first, empty);
  incumbent.offer(tour("worse", 12));
  incumbent.raise({.step = 5, .reason = "work"});
  EXPECT_EQ(incumbent.version(), first);
  incumbent.offer(tour("b", 9));
  EXPECT_NE(incumbent.version(), first);
}

TEST(Incumbent, bound_only_rises) {
  TourIncumbent incumbent;
  EXPECT_EQ(incumbent.bound().step, 0);
  incumbent.raise({.step = 5, .reason = "five"});
  incumbent.raise({.step = 4, .reason = "four"});
  incumbent.raise({.step = 5, .reason = "five again"});
  EXPECT_EQ(incumbent.bound().step, 5);
  EXPECT_EQ(incumbent.bound().reason, "five");
}

TEST(Incumbent, is_optimal_when_what_fits_meets_the_bound) {
  TourIncumbent incumbent;
  incumbent.raise({.step = 9, .reason = "work"});
  EXPECT_FALSE(incumbent.optimal());
  incumbent.offer(tour("does not fit", 8, false));
  EXPECT_FALSE(incumbent.optimal());
  incumbent.offer(tour("fits", 10));
  EXPECT_FALSE(incumbent.optimal());
  incumbent.raise({.step = 10, .reason = "a proof"});
  EXPECT_TRUE(incumbent.optimal());
}

TEST(Incumbent, tells_every_listener_of_every_improvement_in_the_order_they_came) {
  TourIncumbent incumbent;
  std::vector<std::string> heard;
  const auto hear = [&](const std::string& who) {
    return [&heard, who](const TourIncumbent& now) {
      heard.push_back(who + (now.best() ? now.best()->name : "") +
                      std::to_string(now.bound().step));
    };
  };
  const auto one = incumbent.listen(hear("1:"));
  const auto two = incumbent.listen(hear("2:"));
  incumbent.raise({.step = 3, .reason = ""});
  incumbent.offer(tour("a", 10));
  incumbent.offer(tour("worse", 11));
  incumbent.raise({.step = 2, .reason = ""});
  EXPECT_THAT(heard, ElementsAre("1:3", "2:3", "1:a3", "2:a3"));
}

TEST(Incumbent, calls_a_listener_no_more_once_its_subscription_is_gone) {
  TourIncumbent incumbent;
  int kept_calls = 0;
  int dropped_calls = 0;
  const auto kept = incumbent.listen([&](const TourIncumbent&) { ++kept_calls; });
  auto dropped = incumbent.listen([&](const TourIncumbent&) { ++dropped_calls; });
  incumbent.offer(tour("a", 10));
  dropped.reset();
  incumbent.offer(tour("b", 9));
  EXPECT_EQ(kept_calls, 2);
  EXPECT_EQ(dropped_calls, 1);
}

TEST(Incumbent, a_listener_may_add_another_and_drop_itself) {
  TourIncumbent incumbent;
  std::vector<std::string> heard;
  TourIncumbent::Subscription first;
  TourIncumbent::Subscription second;
  first = incumbent.listen([&](const TourIncumbent& now) {
    heard.push_back("first " + now.best()->name);
    second = incumbent.listen(
        [&](const TourIncumbent& later) { heard.push_back("second " + later.best()->name); });
    first.reset();
  });
  incumbent.offer(tour("a", 10));
  incumbent.offer(tour("b", 9));
  EXPECT_THAT(heard, ElementsAre("first a", "second b"));
}

TEST(Incumbent, drops_what_it_heard_when_an_answer_refutes_it) {
  TourIncumbent incumbent;
  incumbent.offer(tour("a", 10));
  incumbent.hear({11, "nonsense"});
  EXPECT_EQ(incumbent.bound().step, 0) << "refuted already";
  incumbent.raise({5, "proven here"});
  incumbent.hear({9, "somebody's"});
  EXPECT_EQ(incumbent.bound().step, 9);
  incumbent.offer(tour("b", 9));
  EXPECT_TRUE(incumbent.optimal());
  incumbent.offer(tour("does not fit", 3, false));
  EXPECT_EQ(incumbent.bound().step, 9);
  incumbent.offer(tour("c", 8));
  EXPECT_EQ(incumbent.bound().step, 5);
  EXPECT_FALSE(incumbent.optimal());
}

TEST(Incumbent, takes_offers_from_several_threads) {
  constexpr int kThreads = 4;
  constexpr Nanoseconds kEach = 2000;
  TourIncumbent incumbent;
  std::vector<Nanoseconds> heard;  // one listener at a time: no lock
  const auto listening =
      incumbent.listen([&](const TourIncumbent& now) { heard.push_back(now.value()->step); });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (Nanoseconds i = 0; i < kEach; ++i) {
        incumbent.offer(tour("t", (kEach - i) * kThreads + thread));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(incumbent.value()->step, kThreads) << "the least of all offers";
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(incumbent.version(), heard.size());
  for (std::size_t i = 1; i < heard.size(); ++i) EXPECT_LT(heard[i], heard[i - 1]);
}

TEST(SearchContext, has_the_starts_that_it_was_given_and_an_empty_incumbent) {
  const SearchContext<Tour> plain;
  EXPECT_THAT(plain.starts(), IsEmpty());
  SearchContext<Tour> context({tour("a", 10), tour("b", 9)});
  ASSERT_EQ(context.starts().size(), 2U);
  EXPECT_EQ(context.starts()[1].name, "b");
  EXPECT_FALSE(context.incumbent().best()) << "starts are for the search to offer";
}

}  // namespace
}  // namespace emplace
