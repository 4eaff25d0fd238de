#include "learn/units/coordinates.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "learn/units/groupings.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

// A step of two layers; ops are p0 f0 p1 f1 b1 b0 u0, one a unit.
std::shared_ptr<const Problem> two_layers() {
  TimedGraph graph;
  const TensorId p0 = graph.parameter("p0", 1000);
  const TensorId f0 = graph.op("f0", 10, {p0}, 4000);
  const TensorId p1 = graph.parameter("p1", 500);
  const TensorId f1 = graph.op("f1", 10, {f0, p1}, 2000);
  const TensorId b1 = graph.backward("b1", 20, {f1});
  const TensorId b0 = graph.backward("b0", 20, {b1, f0});
  graph.update("u0", 20, {b0});
  return compile_timed(graph.build(), gpu_cluster(2));
}

UnitGraph each_op(const Problem& problem) {
  std::vector<std::uint32_t> labels(problem.num_groups());
  std::iota(labels.begin(), labels.end(), 0U);
  return {problem, labels};
}

TEST(Coordinates, ascend_from_0_to_1_along_every_line_of_every_graph) {
  Rng rng(1);
  for (int trial = 0; trial < 100; ++trial) {
    const auto problem = random_problem(rng);
    const UnitGraph units = group_by_colocation(*problem);
    for (const Line line : {Line::kLocality, Line::kDepth, Line::kModules}) {
      std::vector<UnitId> order = order_along(units, line);
      const Coordinates places = coordinates_of(units, order, kept_bytes(units));
      for (const std::vector<double>* place : {&places.time, &places.memory}) {
        ASSERT_EQ(place->size(), units.size());
        double last = 0;
        for (const UnitId unit : order) {
          EXPECT_GE((*place)[unit], last);
          last = (*place)[unit];
        }
        EXPECT_LE(last, 1 + 1e-12);
      }
      std::sort(order.begin(), order.end());
      std::vector<UnitId> all(units.size());
      std::iota(all.begin(), all.end(), UnitId{0});
      EXPECT_EQ(order, all);
    }
  }
}

TEST(Coordinates, are_the_share_before_the_middle_of_a_unit) {
  const auto problem = two_layers();
  const UnitGraph units = each_op(*problem);
  std::vector<UnitId> order(units.size());
  std::iota(order.begin(), order.end(), UnitId{0});
  std::vector<double> kept(units.size(), 0);
  kept[0] = 3;
  kept[3] = 1;
  const Coordinates places = coordinates_of(units, order, kept);
  const std::vector<double> time{0, 5, 10, 15, 30, 50, 70};  // of 80 us
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    EXPECT_DOUBLE_EQ(places.time[unit], time[unit] / 80) << unit;
  }
  EXPECT_DOUBLE_EQ(places.memory[0], 1.5 / 4);
  EXPECT_DOUBLE_EQ(places.memory[1], 3.0 / 4);
  EXPECT_DOUBLE_EQ(places.memory[3], 3.5 / 4);
}

TEST(Coordinates, are_in_the_middle_where_nothing_is_kept) {
  const auto problem = two_layers();
  const UnitGraph units = each_op(*problem);
  const Coordinates places =
      coordinates_of(units, order_along(units, Line::kDepth), std::vector<double>(units.size(), 0));
  EXPECT_EQ(places.memory, std::vector<double>(units.size(), 0.5));
}

TEST(Coordinates, put_backward_ops_and_updates_beside_what_they_are_for) {
  const auto problem = two_layers();
  const UnitGraph units = each_op(*problem);
  ASSERT_EQ(units.size(), 7U);
  // p0 | f0 b0 u0 | p1 | f1 b1
  EXPECT_EQ(order_along(units, Line::kDepth), (std::vector<UnitId>{0, 1, 5, 6, 2, 3, 4}));
}

TEST(Coordinates, keep_modules_together) {
  TimedGraph graph;
  const auto op = [&](const std::string& name, const std::string& module,
                      std::vector<TensorId> inputs) {
    return graph.add(
        {.name = name, .type = "compute", .inputs = std::move(inputs), .module = module}, 10);
  };
  const TensorId a0 = op("a0", "a", {});
  const TensorId b0 = op("b0", "b", {a0});
  const TensorId a1 = op("a1", "a", {a0});
  op("b1", "b", {b0, a1});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_EQ(order_along(each_op(*problem), Line::kModules), (std::vector<UnitId>{0, 2, 1, 3}));
}

TEST(KeptBytes, are_parameters_and_what_the_backward_pass_reads) {
  TimedGraph graph;
  const TensorId parameter = graph.parameter("p", 1000);
  const TensorId read = graph.op("read", 10, {parameter}, 4000);
  const TensorId passing = graph.op("passing", 10, {read}, 7000);  // by forward ops alone
  const TensorId loss = graph.op("loss", 10, {passing}, 8);
  graph.backward("back", 10, {loss, read});  // writes 1000
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const std::vector<double> kept = kept_bytes(each_op(*problem));
  ASSERT_EQ(kept.size(), 5U);
  EXPECT_EQ(kept[0], 1000);
  EXPECT_EQ(kept[1], 4000);
  EXPECT_EQ(kept[2], 0);
  EXPECT_EQ(kept[3], 8);
  EXPECT_GT(kept[4], 0);
  EXPECT_LT(kept[4], 1000);  // not all of the backward pass is there at once
}

TEST(KeptBytes, are_parameters_and_the_largest_output_without_a_backward_pass) {
  TimedGraph graph;
  const TensorId parameter = graph.parameter("p", 1000);
  const TensorId small = graph.op("small", 10, {parameter}, 300);
  graph.op("large", 10, {small}, 700);
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_EQ(kept_bytes(each_op(*problem)), (std::vector<double>{1000, 300, 700}));
  const std::vector<std::uint32_t> together(problem->num_groups(), 0);
  EXPECT_EQ(kept_bytes(UnitGraph(*problem, together)), std::vector<double>{1700});
}

}  // namespace
}  // namespace emplace::learn
