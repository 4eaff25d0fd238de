#include "io/exporters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

#include "sim/simulator.h"

#include "bound/lower_bound.h"
#include "io/graph_json_writer.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

// Everything on the first device.
ExportInput input_of(const std::shared_ptr<const Problem>& problem) {
  PlacementFile placed;
  placed.placer = "by hand";
  placed.placement.assign(problem->num_ops(), 0);
  return {.graph = problem->graph(), .problem = problem, .placed = placed};
}

TEST(Exporters, known_names_are_found_and_others_refused_with_the_nearest) {
  for (const Exporter& exporter : exporters()) {
    EXPECT_EQ(&find_exporter(exporter.name), &exporter);
    EXPECT_FALSE(exporter.summary.empty()) << exporter.name;
  }
  try {
    find_exporter("trase");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown format 'trase' (did you mean 'trace'?)"));
    EXPECT_THAT(error.what(), HasSubstr("trace, dot, placement"));
  }
}

TEST(Exporters, placement_has_what_is_predicted_on_this_cluster) {
  const auto& problem = tiny_case("diamond_on_two_equal").problem;
  const ExportInput input = input_of(problem);
  const Timeline timeline = Simulator(problem).run(input.placed.placement, {});
  const Json file = Json::parse(find_exporter("placement").write(input));
  EXPECT_EQ(file["graph"], problem->graph().name());
  EXPECT_EQ(file["cluster"], problem->cluster().name());
  EXPECT_EQ(file["placer"], "by hand");
  EXPECT_EQ(file["predicted"]["step_ns"], timeline.step);
  EXPECT_EQ(file["predicted"]["fits"], true);
  EXPECT_EQ(file["predicted"]["lower_bound_ns"], lower_bound(*problem, true).step);
}

TEST(Exporters, bound_is_of_all_placements_where_this_one_does_not_fit) {
  const auto& problem = tiny_case("big_parameters_on_two_with_no_room").problem;
  const Json file = Json::parse(find_exporter("placement").write(input_of(problem)));
  EXPECT_EQ(file["predicted"]["fits"], false);
  EXPECT_EQ(file["predicted"]["lower_bound_ns"], lower_bound(*problem, false).step);
}

TEST(Exporters, timeline_is_the_one_given_and_is_asked_for_only_where_it_is_shown) {
  const auto& problem = tiny_case("one_op_on_two_equal").problem;
  ExportInput input = input_of(problem);
  int asked = 0;
  input.timeline = [&] {
    ++asked;
    Timeline timeline = Simulator(problem).run(input.placed.placement, {});
    timeline.step = 12345;
    return timeline;
  };
  find_exporter("dot").write(input);
  EXPECT_EQ(asked, 0);
  const Json file = Json::parse(find_exporter("placement").write(input));
  EXPECT_EQ(file["predicted"]["step_ns"], 12345);
  EXPECT_EQ(asked, 1);
}

TEST(Exporters, model_alone_needs_no_placement) {
  const Graph graph = chain();
  const Exporter& exporter = find_exporter("graph");
  EXPECT_EQ(exporter.of, Exporter::Of::kModel);
  EXPECT_EQ(exporter.write({.graph = graph}), write_graph_json(graph));
}

}  // namespace
}  // namespace emplace
