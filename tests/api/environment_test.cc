// Many placements by group, features, text of graphs and clusters, and placers that are functions,
// by the public headers alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/fork_model.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::int32_t> kSplit{0, 0, 1, 0};

PlaceOptions own(const std::string& name,
                 std::function<std::vector<std::int32_t>(PlacerSession&)> function) {
  PlaceOptions options;
  options.placer = "";
  options.functions = {{name, std::move(function)}};
  options.budget.evaluations = 100;
  return options;
}

TEST(Environment, values_placements_as_the_simulator_does) {
  const auto problem = fork_on(2, 2500);
  const Environment environment(problem);
  std::vector<std::int32_t> rows;
  for (int i = 0; i < 40; ++i) {
    rows.insert(rows.end(), {0, i % 2, i / 2 % 2, i / 4 % 2});
  }
  for (const int threads : {1, 3}) {
    std::vector<StepValue> values(40);
    environment.evaluate(rows, values, threads);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Placement placement = environment.placement({rows.data() + 4 * i, 4});
      const StepValue alone = simulate_all(problem, {placement})[0];
      EXPECT_EQ(values[i].step, alone.step);
      EXPECT_EQ(values[i].overflow, alone.overflow);
    }
  }
  EXPECT_EQ(environment.evaluations(), 80);
}

TEST(Environment, names_the_placement_and_the_op_that_are_wrong) {
  const Environment environment(fork_on(2));
  std::vector<StepValue> values(2);
  const std::vector<std::int32_t> rows{0, 0, 1, 0, 0, 0, -1, 0};
  EXPECT_THAT(error_text([&] { environment.evaluate(rows, values); }),
              AllOf(HasSubstr("placement 1"), HasSubstr("op 'right'"), HasSubstr("-1")));
  EXPECT_THAT(error_text([&] { environment.evaluate(kSplit, values); }),
              HasSubstr("2 placements of 4 groups, not 4"));
  EXPECT_THAT(error_text([&] {
                environment.placement({kSplit.data(), 3});
              }),
              HasSubstr("each of 4 groups, not 3"));
}

TEST(FeaturesOf, describes_groups_and_what_goes_between_them) {
  const auto problem = fork_on(2);
  const GroupFeatures features = features_of(*problem);
  EXPECT_EQ(size_of(*problem).groups, features.names.size());
  EXPECT_THAT(features.names, ElementsAre("weight", "left", "right", "join"));
  EXPECT_EQ(features.durations.size(), 8U);
  EXPECT_EQ(features.durations[2], 100'000);
  EXPECT_EQ(features.edge_from.size(), features.edge_bytes.size());
  EXPECT_THAT(features.after, ElementsAre(110'000, 110'000, 110'000, 10'000));
}

TEST(Parse, reads_what_is_written) {
  const auto problem = fork_on(2);
  const auto graph = parse_graph(graph_json(graph_of(*problem)));
  const std::string yaml = cluster_yaml(cluster_of(*problem));
  const auto cluster = parse_cluster(yaml);
  EXPECT_EQ(simulate(compile(graph, cluster), {0, 0, 1, 0}).step, 111'000);
  EXPECT_EQ(graph_json(*parse_graph(graph_json(*graph))), graph_json(*graph));
  EXPECT_EQ(cluster_yaml(*cluster), yaml);
  EXPECT_NE(error_text([] { parse_graph("{"); }), "");
  EXPECT_NE(error_text([] { parse_cluster("devices: 3"); }), "");
}

TEST(PlacerFunction, is_a_placer_like_any_other) {
  CompareOptions options;
  static_cast<PlaceOptions&>(options) = own("split", [](PlacerSession&) { return kSplit; });
  options.placer = "single";
  options.seeds = 2;
  const std::vector<Answer> answers = compare(fork_on(2), options);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].placer(), "split");
  EXPECT_EQ(answers[0].time(), 111'000);
  EXPECT_EQ(answers[2].placer(), "single");
}

TEST(PlacerFunction, evaluates_within_its_budget_and_keeps_the_best) {
  const auto asks = [](PlacerSession& session) {
    EXPECT_EQ(session.starts().size(), 1U);
    EXPECT_EQ(session.starts()[0], kSplit);
    std::vector<std::int32_t> rows;
    for (int i = 0; i < 400; ++i) rows.insert(rows.end(), {0, 0, i == 50 ? 1 : 0, 0});
    std::vector<StepValue> values(400);
    EXPECT_EQ(session.evaluate(rows, values), 100U);
    EXPECT_TRUE(session.spent());
    EXPECT_EQ(session.evaluate(rows, values), 0U);
    return std::vector<std::int32_t>{};
  };
  PlaceOptions options = own("asks", asks);
  options.starts = {{{0, 0, 1, 0}, {}}};
  EXPECT_EQ(place(fork_on(2), options).time(), 111'000);
}

TEST(PlacerFunction, is_named_when_it_goes_wrong) {
  const auto error = [](const PlaceOptions& options) {
    return error_text([&] { place(fork_on(2), options); });
  };
  const auto nothing = [](PlacerSession&) { return std::vector<std::int32_t>{}; };
  EXPECT_THAT(error(own("lazy", nothing)), AllOf(HasSubstr("'lazy'"), HasSubstr("evaluated none")));
  EXPECT_THAT(error(own("wild",
                        [](PlacerSession&) {
                          return std::vector<std::int32_t>{0, 0, 9, 0};
                        })),
              AllOf(HasSubstr("'wild'"), HasSubstr("op 'right'")));
  EXPECT_THAT(error(own("heft", nothing)), HasSubstr("one of that name already"));
  EXPECT_THAT(error(own("a,b", nothing)), HasSubstr("without commas"));
}

}  // namespace
}  // namespace emplace
