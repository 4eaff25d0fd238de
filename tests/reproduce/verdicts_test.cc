// What runs say of a claim, on runs that are written down here.
#include "reproduce/verdicts.h"

#include <cmath>

#include <gtest/gtest.h>

namespace emplace::bench {
namespace {

const std::string kRnnlm = "RNNLM on 4 of today";
const std::string kOther = "ResNet-50 on 4 of today";
constexpr Nanoseconds kSingle = 1'000'000;

Statement at_most(double most, double least = 0) {
  return {.text = "left is better",
          .left = "random",
          .right = "anneal",
          .workloads = {kRnnlm},
          .least = least,
          .most = most};
}

TEST(Verdicts, of_a_statement_are_by_its_whole_interval) {
  using enum Verdict;
  const Statement claimed = at_most(0.9, 0.5);
  const auto verdict = [&](const MeanInterval& interval) {
    return judge(claimed, Ratio{interval, Sample::kSeeds});
  };
  EXPECT_EQ(verdict({0.7, 0.6, 0.8}), kReproduced);
  EXPECT_EQ(verdict({0.7, 0.5, 0.8}), kReproduced);  // the least is within
  EXPECT_EQ(verdict({0.7, 0.6, 0.9}), kUnclear);     // the most is not
  EXPECT_EQ(verdict({0.7, 0.4, 0.8}), kUnclear);
  EXPECT_EQ(verdict({0.7, 0.4, 1.8}), kUnclear);
  EXPECT_EQ(verdict({1.0, 0.9, 1.1}), kNotReproduced);
  EXPECT_EQ(verdict({0.4, 0.3, 0.49}), kNotReproduced);
  EXPECT_EQ(judge(claimed, std::nullopt), kUnclear);
}

TEST(Verdicts, of_a_claim_are_the_worst_of_its_statements) {
  using enum Verdict;
  EXPECT_EQ(judge({kReproduced, kReproduced}), kReproduced);
  EXPECT_EQ(judge({kReproduced, kUnclear}), kUnclear);
  EXPECT_EQ(judge({kReproduced, kUnclear, kNotRun}), kNotRun);
  EXPECT_EQ(judge({kNotRun, kUnclear, kNotReproduced, kReproduced}), kNotReproduced);
}

// Runs by hand: of `left` and `right` on both models, with as many seeds as there are step times.
class EvidenceOf {
 public:
  void add(const std::string& model, const std::string& placer, int seed, double step,
           bool fits = true, const std::string& code = "") {
    LearningRun run{.step = static_cast<Nanoseconds>(step * kSingle),
                    .fits = fits,
                    .evaluations = 600,
                    .agent_seconds = 60,
                    .measured_seconds = 600,
                    .code = code,
                    .history = {}};
    // Half of the way down after 100 placements, there after 200.
    run.history = {{100, 10, 100, static_cast<Nanoseconds>((step + 1) / 2 * kSingle), fits},
                   {200, 20, 200, run.step, fits}};
    store_.keep(run_key(workload(model), placer, seed, {}), run);
  }
  Evidence with(int seeds) const {
    return {{{kRnnlm, {nullptr, kSingle}}, {kOther, {nullptr, kSingle}}}, store_, seeds, {}};
  }

 private:
  RunStore store_{""};
};

TEST(Evidence, compares_seeds_in_pairs_and_averages_over_models) {
  EvidenceOf runs;
  for (int seed = 1; seed <= 2; ++seed) {
    runs.add(kRnnlm, "random", seed, 0.4 * seed);
    runs.add(kRnnlm, "anneal", seed, 0.8 * seed);
    runs.add(kOther, "random", seed, 0.5);
    runs.add(kOther, "anneal", seed, 0.25);
  }
  const Evidence evidence = runs.with(2);
  // Half as long with either seed, though the seeds are far apart: the interval has no width.
  const auto halved = evidence.ratio(at_most(1));
  ASSERT_TRUE(halved);
  EXPECT_NEAR(halved->interval.mean, 0.5, 1e-6);
  EXPECT_NEAR(halved->interval.high, 0.5, 1e-6);
  Statement both = at_most(1);
  both.workloads = {kRnnlm, kOther};
  EXPECT_NEAR(evidence.ratio(both)->interval.mean, 1, 1e-6);
}

// One run is one run, however often it is counted.
TEST(Evidence, without_chance_is_as_wide_as_its_models_differ) {
  EvidenceOf runs;
  runs.add(kRnnlm, "single", 1, 0.4);
  runs.add(kOther, "single", 1, 0.9);
  runs.add(kRnnlm, "heft", 1, 0.8);
  runs.add(kOther, "heft", 1, 0.9);
  const Evidence evidence = runs.with(5);
  Statement statement = at_most(1);
  statement.left = "single";
  statement.right = "heft";
  statement.workloads = {kRnnlm, kOther};
  const auto over_both = evidence.ratio(statement);
  ASSERT_TRUE(over_both);
  EXPECT_EQ(over_both->sample, Sample::kModels);
  // Half, and equal: by Student's t of two values, in logarithms.
  EXPECT_NEAR(over_both->interval.mean, std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(over_both->interval.high, std::sqrt(0.5) * std::exp(12.706 * std::log(2) / 2), 1e-2);
  EXPECT_EQ(judge(statement, over_both), Verdict::kUnclear);
  // A single model says nothing of others.
  statement.workloads = {kRnnlm};
  EXPECT_EQ(judge(statement, evidence.ratio(statement)), Verdict::kUnclear);
}

TEST(Evidence, of_seeds_that_agree_to_the_digit_is_over_models_too) {
  EvidenceOf runs;
  for (int seed = 1; seed <= 3; ++seed) {
    runs.add(kRnnlm, "random", seed, 0.5);
    runs.add(kRnnlm, "anneal", seed, 0.8);
  }
  EXPECT_EQ(judge(at_most(1), runs.with(3).ratio(at_most(1))), Verdict::kUnclear);
  // One seed that differs, of either, and they are a sample.
  runs.add(kRnnlm, "anneal", 3, 0.81);
  const auto over_seeds = runs.with(3).ratio(at_most(1));
  EXPECT_EQ(over_seeds->sample, Sample::kSeeds);
  EXPECT_EQ(judge(at_most(1), over_seeds), Verdict::kReproduced);
}

TEST(Evidence, is_of_the_seeds_that_both_have) {
  EvidenceOf runs;
  for (int seed = 1; seed <= 5; ++seed) runs.add(kRnnlm, "random", seed, seed <= 3 ? 0.5 : 0.1);
  runs.add(kRnnlm, "anneal", 1, 0.5);
  runs.add(kRnnlm, "anneal", 2, 0.5);
  runs.add(kRnnlm, "anneal", 4, 0.5);  // after a gap
  EXPECT_EQ(runs.with(5).seeds(kRnnlm, "random"), 5);
  EXPECT_EQ(runs.with(5).seeds(at_most(1)), 2);
  EXPECT_FALSE(runs.with(5).has(at_most(1)));
  EXPECT_TRUE(runs.with(2).has(at_most(1)));  // as many as were asked for
  runs.add(kRnnlm, "anneal", 3, 0.5);
  const Evidence evidence = runs.with(5);
  EXPECT_EQ(evidence.seeds(at_most(1)), 4);
  EXPECT_TRUE(evidence.has(at_most(1)));
  EXPECT_NEAR(evidence.ratio(at_most(1))->interval.mean, std::pow(0.2, 0.25), 1e-6);
}

TEST(Evidence, says_which_code_it_is_of) {
  EvidenceOf runs;
  for (int seed = 1; seed <= 3; ++seed) {
    runs.add(kRnnlm, "random", seed, 0.5, true, "older");
    runs.add(kRnnlm, "anneal", seed, 0.5, true, "newer");
  }
  runs.add(kRnnlm, "anneal", 4, 0.5, true, "unpaired");
  const Evidence evidence = runs.with(5);
  EXPECT_EQ(evidence.codes(kRnnlm, "random"), std::set<std::string>{"older"});
  EXPECT_EQ(evidence.codes(at_most(1)), (std::set<std::string>{"newer", "older"}));
}

TEST(Evidence, says_nothing_where_a_run_found_nothing_that_fits) {
  EvidenceOf runs;
  for (int seed = 1; seed <= 2; ++seed) {
    runs.add(kRnnlm, "random", seed, 0.5);
    runs.add(kRnnlm, "anneal", seed, 0.1, seed == 1);
  }
  const Evidence evidence = runs.with(2);
  EXPECT_FALSE(evidence.ratio(at_most(1)));
  EXPECT_EQ(evidence.step_times(kRnnlm, "anneal"), (std::vector<double>{0.1, kNothingFits}));
}

TEST(Evidence, counts_until_a_run_is_as_good_as_the_worse_median) {
  EvidenceOf runs;
  // The target is 0.7: the left run passes it half way down (0.7), the right one at its end; a run
  // of 0.9 never gets there, and counts with all of its placements.
  for (int seed = 1; seed <= 3; ++seed) {
    runs.add(kRnnlm, "random", seed, 0.4);
    runs.add(kRnnlm, "anneal", seed, seed == 3 ? 0.9 : 0.7);
  }
  const Evidence evidence = runs.with(3);
  const auto ratio_of = [&](Measure measure) {
    Statement statement = at_most(1);
    statement.measure = measure;
    return evidence.ratio(statement)->interval.mean;
  };
  EXPECT_NEAR(ratio_of(Measure::kEvaluations), std::cbrt(0.5 * 0.5 * 100 / 600), 1e-6);
  EXPECT_NEAR(ratio_of(Measure::kAgentSeconds), std::cbrt(0.5 * 0.5 * 10 / 60), 1e-6);
  EXPECT_NEAR(ratio_of(Measure::kMeasuredSeconds), std::cbrt(0.5 * 0.5 * 100 / 600), 1e-6);
}

// 427783 / 777777, rounded, times 777777 is less than 427783.
TEST(Evidence, has_every_run_reach_its_own_result) {
  constexpr Nanoseconds kOdd = 777'777;
  constexpr Nanoseconds kFound = 427'783;
  RunStore store("");
  for (const auto& [placer, reached] : {std::pair("random", 100), std::pair("anneal", 200)}) {
    LearningRun run{.step = kFound, .fits = true, .evaluations = 600};
    run.history = {{50, 0, 0, kOdd, true}, {reached, 0, 0, kFound, true}};
    for (int seed = 1; seed <= 3; ++seed) {
      store.keep(run_key(workload(kRnnlm), placer, seed, {}), run);
    }
  }
  const Evidence evidence({{kRnnlm, {nullptr, kOdd}}}, store, 3, {});
  Statement statement = at_most(1);
  statement.measure = Measure::kEvaluations;
  EXPECT_NEAR(evidence.ratio(statement)->interval.mean, 0.5, 1e-6);
}

}  // namespace
}  // namespace emplace::bench
