// What else could be done, rates, clusters side by side, and models: as text and as JSON.
#include "report/alternatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/assessment_report.h"
#include "report/cluster_comparison.h"
#include "report/model_report.h"
#include "report/rates_report.h"
#include "report/shortfall.h"
#include "support/fork.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;

Assessment fork_answer(Bytes memory = kUnlimited, const StepTerms& terms = {}) {
  const auto simulator = std::make_shared<const Simulator>(fork_on(gpu_cluster(2, memory)));
  return Assessor(simulator, {}, {}, terms).assess({0, 0, 1, 1}, {});
}

Assessment at_ratio(double ratio) {
  Assessment answer = fork_answer();
  answer.bound = {static_cast<Nanoseconds>(static_cast<double>(answer.time()) / ratio), "a proof"};
  return answer;
}

TEST(DescribeGap, is_in_words_that_people_use) {
  EXPECT_EQ(describe_gap(at_ratio(1)),
            "proven optimal: no placement that fits beats 111.0 us (a proof)");
  EXPECT_THAT(describe_gap(at_ratio(1.0005)), HasSubstr("optimal to 0.1 %: no placement"));
  EXPECT_THAT(describe_gap(at_ratio(1.0034)),
              HasSubstr("within 0.4 % of the best possible placement: none that fits beats"));
  EXPECT_THAT(describe_gap(at_ratio(1.0331)), HasSubstr("within 4 % of the best"));
  EXPECT_THAT(describe_gap(at_ratio(2.5)),
              HasSubstr("at most 2.5 times as long as the best possible placement takes"));
  Assessment on_two = at_ratio(1.2);
  on_two.most_devices = 2;
  EXPECT_THAT(describe_gap(on_two), HasSubstr("none on at most 2 devices that fits beats"));
  Assessment whole = at_ratio(1.2);
  whole.granularity = Granularity::kModule;
  EXPECT_THAT(describe_gap(whole),
              HasSubstr("within 20 % of the best possible placement that keeps modules whole: none "
                        "that fits beats"));
  whole.bound.step = whole.time();
  EXPECT_THAT(describe_gap(whole), HasSubstr("no placement that keeps modules whole and fits"));
}

std::string alternatives(const WayToRun& parts, const Assessment& answer) {
  Explanation explanation;
  explanation.in_parts = parts;
  return describe_alternatives(explanation, answer);
}

TEST(Alternatives, say_when_dividing_tensors_beats_every_placement) {
  const Assessment answer = fork_answer();
  const auto parts = [](Nanoseconds step, bool fits = true) {
    return WayToRun{.name = "tofu", .step = step, .peaks = {1, 1}, .fits = fits};
  };
  const std::string text = alternatives(parts(55'500), answer);
  EXPECT_THAT(text, AllOf(HasSubstr("no placement of whole ops can beat 110.0 us"),
                          HasSubstr("tofu takes 55.50 us, 2.00 times as"),
                          HasSubstr("`emplace partition`")));
  Assessment loose = fork_answer();
  loose.bound.step = 50'000;
  EXPECT_THAT(alternatives(parts(60'000), loose),
              AllOf(HasSubstr("1.85 times as fast"), Not(HasSubstr("no placement"))));
  EXPECT_THAT(alternatives(parts(111'000), answer), IsEmpty()) << "no faster";
  EXPECT_THAT(alternatives(parts(10, false), answer), IsEmpty()) << "does not fit";
  EXPECT_THAT(alternatives(parts(900'000), fork_answer(1500)), HasSubstr("in parts it fits"));
}

// What keeps modules whole is bounded more tightly than what may cut them.
TEST(Alternatives, speak_of_placements_op_by_op_where_modules_are_whole) {
  const Assessment answer = fork_answer();
  ASSERT_EQ(answer.bound.step, 110'000);
  const auto text = [&](Nanoseconds step) {
    Explanation explanation;
    explanation.in_parts = WayToRun{.name = "tofu", .step = step, .peaks = {1, 1}, .fits = true};
    explanation.whole_modules = WholeModules{.bound = {80'000, "a proof"}};
    return describe_alternatives(explanation, answer);
  };
  EXPECT_THAT(text(90'000), AllOf(HasSubstr("1.23 times as fast"), Not(HasSubstr("can beat"))));
  EXPECT_THAT(text(70'000), HasSubstr("no placement of whole ops can beat 80.00 us"));
}

TEST(Alternatives, list_batches_and_other_hardware) {
  const Assessment answer = fork_answer();
  Explanation explanation = explain(answer);
  explanation.batches = BatchSearch{
      .largest = 6, .tried = {{6, true, "on gpu0 alone"}, {8, false, "proven: too much"}}};
  explanation.sensitivities = Sensitivities{{111'000, 0},
                                            {{"speed", 2, "devices twice as fast", {56'000, 0}},
                                             {"memory", 2, "twice the memory", {111'000, 0}}}};
  const std::string text = to_text(explanation, answer);
  EXPECT_THAT(text, HasSubstr("Batches that were tried: 6 is the largest found to fit"));
  EXPECT_THAT(text, HasSubstr("proven: too much"));
  EXPECT_THAT(text, HasSubstr("What other hardware would bring, against 111.0 us"));
  EXPECT_THAT(text, HasSubstr("devices twice as fast"));
  EXPECT_THAT(text, HasSubstr("1.98 times as fast"));
  EXPECT_THAT(text, HasSubstr("nothing"));
  const Json json = to_json(explanation, answer);
  EXPECT_EQ(json["batches"]["largest"], 6);
  EXPECT_EQ(json["batches"]["tried"][1]["fits"], false);
  EXPECT_EQ(json["sensitivities"]["list"][0]["resource"], "speed");
  EXPECT_EQ(json["sensitivities"]["list"][0]["what"], "devices twice as fast");
  EXPECT_EQ(json["sensitivities"]["list"][0]["step_ns"], 56'000);
  EXPECT_FALSE(json.contains("in_parts"));
}

// Batches are tried without CPUs; the answer may use them where none fits.
TEST(Alternatives, do_not_say_that_nothing_fits_beside_an_answer_that_does) {
  Explanation explanation;
  explanation.batches =
      BatchSearch{.largest = std::nullopt, .tried = {{8, false, "proven: too much"}}};
  EXPECT_THAT(describe_alternatives(explanation, fork_answer(1500)),
              HasSubstr("tried: none fits\n"));
  EXPECT_THAT(describe_alternatives(explanation, fork_answer()),
              HasSubstr("none was found to fit, so the search went on with the smallest"));
  ClusterSpec cluster = gpu_cluster(1);
  cluster.kinds[0].name = cluster.devices[0].kind = "cpu";
  cluster.devices[0].name = "gpu";  // by which its times are known
  const Assessment on_cpu =
      Assessor(std::make_shared<const Simulator>(fork_on(cluster)), {}).assess({0, 0, 0, 0}, {});
  EXPECT_THAT(describe_alternatives(explanation, on_cpu),
              HasSubstr("none fits without CPUs; the smallest is placed with them"));
}

TEST(RatesReport, shows_what_is_known) {
  const StepTerms terms{.work = {.samples = 111, .tokens = 0, .flops = 1.11e8},
                        .prices = Prices::parse({"gpu=3.6"})};
  const Assessment answer = fork_answer(kUnlimited, terms);
  EXPECT_EQ(to_text(answer.rates),
            "speed     1.00 million samples/s, 1 TFLOP/s, 50 % of the peak of the devices used "
            "(MFU)\n"
            "cost      7.20 an hour for the devices used, 0.000000222 a step, 0.00200 per million "
            "samples\n");
  const Json json = Json::parse(to_json(answer));
  EXPECT_DOUBLE_EQ(json["rates"]["utilisation"], 0.5);
  EXPECT_FALSE(json["rates"].contains("tokens_per_second"));
  EXPECT_THAT(to_text(Rates{}), IsEmpty());
}

TEST(Hopeless, says_what_is_short_and_what_would_help) {
  const SubsetProblems problems(compile_timed(fork_graph(3000), gpu_cluster(2, 2000)), {});
  ASSERT_TRUE(problems.why_nothing_fits());
  const std::string text = describe_hopeless(problems, false);
  EXPECT_THAT(text, HasSubstr("this is nearest: "));
  EXPECT_THAT(text, HasSubstr("does not fit: 'gpu"));
  EXPECT_THAT(text, HasSubstr("times the memory on every device"));
  const Json json = Json::parse(why_nothing_fits_json("a proof", text));
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["reason"], "a proof");
  EXPECT_GE(json["advice"].size(), 3U);
}

TEST(ClusterComparison, shows_each_cluster_and_the_fastest_and_the_cheapest) {
  const StepTerms terms{.work = {.samples = 10}, .prices = Prices::parse({"gpu=3.6"})};
  RunResult run;
  run.run.placer = MethodSpec::parse("expert");
  const Assessment answer = fork_answer(1'000'000, terms);
  ClusterRow two = make_row(answer, run, std::nullopt, terms);
  two.cluster = "two";
  ClusterRow parts = make_row(
      answer, run, WayToRun{.name = "tofu", .step = 50'000, .peaks = {1, 1}, .fits = true}, terms);
  parts.cluster = "divided";
  const std::vector<ClusterRow> rows{two, parts,
                                     make_hopeless_row(answer.problem().cluster(), "too small")};
  const std::string text = to_text(rows, StepTime{});
  EXPECT_THAT(text, HasSubstr("fastest: divided, 50.00 us, tensors divided by tofu"));
  EXPECT_THAT(text, HasSubstr("cheapest: divided, 0.0100 per million samples"));
  EXPECT_THAT(text, HasSubstr("no placement fits test cluster: too small"));
  const Json json = Json::parse(to_json(rows, StepTime{}))["clusters"];
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0]["step_ns"], kForkOnTwo);
  EXPECT_EQ(json[1]["in_parts"]["step_ns"], 50'000);
  EXPECT_EQ(json[2]["reason"], "too small");
}

// Two devices that divide it take less time and more money than one.
TEST(ClusterComparison, the_cheapest_way_may_not_be_the_fastest) {
  const StepTerms terms{.work = {.samples = 10}, .prices = Prices::parse({"gpu=3.6"})};
  RunResult run;
  run.run.placer = MethodSpec::parse("single");
  const auto simulator = std::make_shared<const Simulator>(fork_on(gpu_cluster(2, 1'000'000)));
  const Assessment alone = Assessor(simulator, {}, {}, terms).assess({0, 0, 0, 0}, {});
  const WayToRun parts{.name = "tofu", .step = 150'000, .peaks = {1, 1}, .fits = true};
  ClusterRow row = make_row(alone, run, parts, terms);
  row.cluster = "two";
  const std::string text = to_text({row}, StepTime{});
  EXPECT_THAT(text, HasSubstr("fastest: two, 150.0 us, tensors divided by tofu"));
  EXPECT_THAT(text, HasSubstr("cheapest: two, 0.0210 per million samples, placed by single"));
}

TEST(ModelReport, shows_figures_and_modules) {
  const ModelSummary summary =
      summarize_model({.model = "zoo:bert-base:batch=1,sequence=8", .cluster = {}});
  const std::string text = to_text(summary, 4);
  EXPECT_THAT(text, HasSubstr("a training step"));
  EXPECT_THAT(text, HasSubstr("1 sample, 8 tokens"));
  EXPECT_THAT(text, HasSubstr("bert.encoder.layer.0 .. 10, each"));
  EXPECT_THAT(text, HasSubstr("not known    nothing"));
  EXPECT_THAT(to_text(summary, 1), Not(HasSubstr("bert.encoder")));
  const Json json = to_json(summary);
  EXPECT_EQ(json["parameters"], summary.figures.parameters);
  EXPECT_EQ(json["tokens"], 8);
  EXPECT_EQ(json["modules"][0]["name"], "bert");
  EXPECT_FALSE(Json(to_json(summary, 1))["modules"][0].contains("modules"));
}

}  // namespace
}  // namespace emplace
