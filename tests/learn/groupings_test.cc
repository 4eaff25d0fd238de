#include "learn/units/groupings.h"

#include <gtest/gtest.h>

#include "learn/features/features.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> on_two(TimedGraph& graph) {
  return compile(graph.build(), std::make_shared<const Cluster>(Cluster(gpu_cluster(2))));
}

// Every group is in one unit, some device may run each unit, neighbours are mutual.
void expect_sound(const UnitGraph& units) {
  const Problem& problem = units.problem();
  Nanoseconds time = 0;
  std::size_t groups = 0;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    ASSERT_FALSE(units.allowed_devices(unit).empty());
    groups += units.groups(unit).size();
    time += units.mean_duration(unit);
    for (const GroupId group : units.groups(unit)) {
      EXPECT_EQ(units.unit_of_group(group), unit);
      for (const DeviceId device : units.allowed_devices(unit)) {
        EXPECT_TRUE(problem.allowed(group, device));
      }
    }
    for (const UnitId next : units.successors(unit)) {
      const auto back = units.predecessors(next);
      EXPECT_NE(next, unit);
      EXPECT_TRUE(std::find(back.begin(), back.end(), unit) != back.end());
    }
  }
  Nanoseconds expected = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) expected += problem.mean_duration(op);
  EXPECT_EQ(time, expected);
  EXPECT_EQ(groups, problem.num_groups());
  std::vector<DeviceId> devices(units.size());
  for (UnitId unit = 0; unit < units.size(); ++unit)
    devices[unit] = units.allowed_devices(unit).back();
  EXPECT_EQ(units.contract(units.expand(devices)), devices);
}

bool every_device_is_allowed(const Problem& problem) {
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (problem.allowed_devices(group).size() != problem.num_devices()) return false;
  }
  return true;
}

TEST(Groupings, are_sound_on_random_problems) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    Rng rng = Rng(99).split(i);
    const auto problem = random_problem(rng);
    expect_sound(group_by_colocation(*problem));
    expect_sound(group_as_colocrl(*problem, {.most_units = 5}));
    expect_sound(group_to_size(*problem, 4));
    if (every_device_is_allowed(*problem)) {
      EXPECT_LE(group_to_size(*problem, 4).size(), 4U);
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << describe(*problem, {}, {});
  }
}

TEST(Groupings, join_an_op_and_its_only_consumer_up_to_a_share_of_the_time) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {});
  const TensorId b = graph.op("b", 10, {a});     // a's only consumer
  const TensorId c = graph.op("c", 10, {b});     // b is read by c and d
  const TensorId d = graph.op("d", 10, {b, c});  // c's only consumer
  graph.op("e", 1000, {d});                      // would be too large together
  const auto problem = on_two(graph);
  const UnitGraph units =
      group_as_colocrl(*problem, {.most_units = 100, .largest_share = 0.1, .by_module = false});
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units.unit_of_op(0), units.unit_of_op(3));
  EXPECT_NE(units.unit_of_op(3), units.unit_of_op(4));
}

TEST(Groupings, join_the_smallest_with_whom_it_exchanges_most_until_few_are_left) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 100, {}, 5000);
  const TensorId small = graph.op("small", 1, {a}, 10);
  const TensorId b = graph.op("b", 100, {small}, 10);
  graph.op("c", 100, {b, a});
  const auto problem = on_two(graph);
  const UnitGraph units = group_to_size(*problem, 3);
  ASSERT_EQ(units.size(), 3U);
  EXPECT_EQ(units.unit_of_op(0), units.unit_of_op(1));
}

// Two steps of a cell that reads its weight once a step.
TEST(Groupings, join_a_module_at_one_step_and_not_across_steps) {
  TimedGraph graph;
  const TensorId weight = graph.parameter("cell.weight");
  const TensorId other = graph.parameter("out.weight");
  std::vector<TensorId> states;
  TensorId state = graph.source("x", "input");
  for (int step = 0; step < 2; ++step) {
    const std::string at = std::to_string(step);
    const TensorId mm = graph.add(
        {.name = "mm" + at, .type = "mm", .inputs = {state, weight}, .module = "cell"}, 50);
    state = graph.add({.name = "act" + at, .type = "tanh", .inputs = {mm}, .module = "cell"}, 5);
    states.push_back(state);
  }
  states.push_back(other);
  // Read twice, so that no step has an only consumer.
  for (const char* name : {"out", "other"}) {
    graph.add({.name = name, .type = "mm", .inputs = states, .module = name}, 50);
  }
  const auto problem = on_two(graph);
  const Graph& built = problem->graph();
  const UnitGraph units = group_as_colocrl(*problem, {.most_units = 100, .largest_share = 0.9});
  const auto unit = [&](const char* name) { return units.unit_of_op(*built.find_op(name)); };
  EXPECT_EQ(unit("mm0"), unit("act0"));
  EXPECT_NE(unit("act0"), unit("mm1"));
}

TEST(Features, are_of_moderate_size_and_named) {
  for (const TinyCase& tiny : tiny_cases()) {
    FeatureNames names;
    const UnitGraph units = group_by_colocation(*tiny.problem);
    const Matrix features = unit_features(units, Features::kAll, &names);
    EXPECT_EQ(features.rows, units.size());
    EXPECT_EQ(features.columns, static_cast<std::int64_t>(names.columns.size()));
    for (const float value : features.values) {
      EXPECT_TRUE(value >= -1.01F && value <= 1.5F) << tiny.name << " " << value;
    }
  }
}

TEST(Features, can_be_types_and_shapes_alone) {
  const UnitGraph units = group_by_colocation(*tiny_case("chain_on_two_equal").problem);
  FeatureNames names;
  const Matrix some = unit_features(units, Features::kTypesAndShapes, &names);
  const Matrix all = unit_features(units);
  ASSERT_EQ(static_cast<std::int64_t>(names.columns.size()), some.columns);
  ASSERT_LT(some.columns, all.columns);
  for (std::int64_t unit = 0; unit < some.rows; ++unit) {
    for (std::int64_t column = 0; column < some.columns; ++column) {
      EXPECT_EQ(some.at(unit, column), all.at(unit, column));
    }
  }
}

TEST(Features, say_who_feeds_whom) {
  const UnitGraph units = group_by_colocation(*tiny_case("chain_on_two_equal").problem);
  const Matrix adjacency = adjacency_features(units);
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    for (UnitId other = 0; other < units.size(); ++other) {
      EXPECT_EQ(adjacency.at(unit, other), -adjacency.at(other, unit));
    }
    for (const UnitId next : units.successors(unit)) EXPECT_EQ(adjacency.at(unit, next), 1);
  }
}

}  // namespace
}  // namespace emplace::learn
