#include "report/placeto_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/presets.h"
#include "graph/graph_builder.h"

#include "cost/problem.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

// One op on each of two K80s; what lies between is on Placeto's buses.
TEST(PlacetoReport, has_gaps_after_the_last_op) {
  GraphBuilder builder("chain");
  const auto a = builder.add({.name = "a", .type = "compute", .time_us = {{"k80", {100, 0}}}},
                             {{.bytes = 190'000}});
  builder.add({.name = "b", .type = "compute", .inputs = a, .time_us = {{"k80", {50, 0}}}}, {});
  const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()),
                               std::make_shared<const Cluster>(preset_cluster("2xk80-placeto")),
                               CostMode::kMeasured);
  const PlacetoReport together = simulate_as_placeto(*problem, Placement{0, 0});
  const PlacetoReport apart = simulate_as_placeto(*problem, Placement{0, 1});
  // 5.7 us after each op; a transfer of 25 us between the two.
  EXPECT_EQ(together.makespan, 161'400);
  EXPECT_GT(apart.makespan, together.makespan);
  EXPECT_EQ(apart.devices.size(), 2U);
  EXPECT_THAT(to_text(together), HasSubstr("161.4"));
  EXPECT_THAT(to_json(together), HasSubstr("\"makespan_ns\":161400"));
}

}  // namespace
}  // namespace emplace
