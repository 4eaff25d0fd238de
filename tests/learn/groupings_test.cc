#include "learn/units/groupings.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "cluster/presets.h"

#include "learn/features/features.h"
#include "learn/policies/independent.h"
#include "support/captures.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> grouped_on_two(TimedGraph& graph) {
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

// Of a chain a - b - c - d - e: b would be between a and c.
TEST(Groupings, as_labelled_are_in_pieces_where_they_would_close_a_cycle) {
  TimedGraph graph;
  TensorId at = graph.op("a", 10, {});
  for (const char* name : {"b", "c", "d", "e"}) at = graph.op(name, 10, {at});
  const auto problem = grouped_on_two(graph);
  const auto units_of = [&](std::vector<std::uint32_t> labels, std::int64_t most) {
    const UnitGraph units = group_as_labelled(*problem, labels, most);
    std::vector<UnitId> of_op;
    for (OpId op = 0; op < 5; ++op) of_op.push_back(units.unit_of_op(op));
    return of_op;
  };
  EXPECT_EQ(units_of({7, 7, 3, 3, 3}, 5), (std::vector<UnitId>{0, 0, 1, 1, 1}));
  EXPECT_EQ(units_of({7, 3, 7, 7, 3}, 5), (std::vector<UnitId>{0, 1, 2, 2, 3}));
  const std::vector<UnitId> few = units_of({7, 3, 7, 7, 3}, 2);
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end()));
  EXPECT_EQ(few.back(), 1U);
}

TEST(Groupings, as_labelled_are_sound_and_acyclic_on_random_problems) {
  Rng rng(31);
  for (int trial = 0; trial < 30; ++trial) {
    const auto problem = random_problem(rng);
    std::vector<std::uint32_t> labels(problem->num_groups());
    for (std::uint32_t& label : labels) label = static_cast<std::uint32_t>(rng.below(4));
    const UnitGraph units = group_as_labelled(*problem, labels, problem->num_groups());
    expect_sound(units);
    // Nobody has company of other labels.
    for (GroupId a = 0; a < problem->num_groups(); ++a) {
      EXPECT_EQ(labels[a], labels[units.groups(units.unit_of_group(a)).front()]);
    }
    expect_sound(group_as_labelled(*problem, labels, 4));
    ASSERT_FALSE(HasFailure()) << describe(*problem, {}, {});
  }
}

TEST(Groupings, join_an_op_and_its_only_consumer_up_to_a_share_of_the_time) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {});
  const TensorId b = graph.op("b", 10, {a});     // a's only consumer
  const TensorId c = graph.op("c", 10, {b});     // b is read by c and d
  const TensorId d = graph.op("d", 10, {b, c});  // c's only consumer
  graph.op("e", 1000, {d});                      // would be too large together
  const auto problem = grouped_on_two(graph);
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
  const auto problem = grouped_on_two(graph);
  const UnitGraph units = group_to_size(*problem, 3);
  ASSERT_EQ(units.size(), 3U);
  EXPECT_EQ(units.unit_of_op(0), units.unit_of_op(1));
}

// By group, mean times.
std::vector<Nanoseconds> group_times(const Problem& problem) {
  std::vector<Nanoseconds> times(problem.num_groups());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    times[problem.group_of(op)] += problem.mean_duration(op);
  }
  return times;
}

// No unit takes more than 1.5 of the share that `most` equal ones would have, but where one group
// alone does.
void expect_useful(const UnitGraph& units, std::int64_t most, const std::string& what) {
  const std::vector<Nanoseconds> times = group_times(units.problem());
  Nanoseconds total = 0;
  for (const Nanoseconds time : times) total += time;
  EXPECT_LE(units.size(), most) << what;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    Nanoseconds longest = 0;
    for (const GroupId group : units.groups(unit)) longest = std::max(longest, times[group]);
    const double share = 1.5 * static_cast<double>(total) / static_cast<double>(most);
    EXPECT_LE(static_cast<double>(units.mean_duration(unit)),
              std::max(share, static_cast<double>(longest)))
        << what << ", " << most << " units";
  }
}

void expect_all_useful(const Problem& problem, std::int64_t most, const std::string& name) {
  expect_useful(group_to_size(problem, most), most, name + " to size");
  expect_useful(group_to_size_acyclic(problem, most), most, name + " to size, acyclic");
  expect_useful(group_as_colocrl(problem, {.most_units = most}), most, name + " as ColocRL");
  expect_useful(group_as_colocrl(problem, {.most_units = most, .acyclic = true}), most,
                name + " as ColocRL, acyclic");
}

// A chain of 40 ms beside 300 pairs of ops that nothing connects, 1.2 ms in all.
std::shared_ptr<const Problem> chain_beside_pairs() {
  TimedGraph graph;
  TensorId at = graph.source("x", "input");
  for (int i = 0; i < 400; ++i) at = graph.op("chain" + std::to_string(i), 100, {at});
  for (int i = 0; i < 300; ++i) {
    const TensorId first = graph.op("first" + std::to_string(i), 2, {});
    graph.op("second" + std::to_string(i), 2, {first});
  }
  return grouped_on_two(graph);
}

TEST(Groupings, are_of_useful_sizes_whatever_parts_the_graph_is_in) {
  const auto problem = chain_beside_pairs();
  for (const std::int64_t most : {8, 32, 100, 200}) {
    expect_all_useful(*problem, most, "pairs");
    for (const UnitGraph& units :
         {group_to_size(*problem, most), group_to_size_acyclic(*problem, most)}) {
      std::set<UnitId> of_chain;
      for (OpId op = 0; op < 400; ++op) of_chain.insert(units.unit_of_op(op));
      EXPECT_GE(static_cast<double>(of_chain.size()), 0.85 * static_cast<double>(most)) << most;
    }
  }
}

TEST(Groupings, are_of_useful_sizes_where_there_are_parts_alone) {
  TimedGraph graph;
  for (int i = 0; i < 500; ++i) {
    const TensorId first = graph.op("first" + std::to_string(i), 1 + i % 7, {});
    graph.op("second" + std::to_string(i), 1 + i % 3, {first});
  }
  const auto problem = grouped_on_two(graph);
  for (const std::int64_t most : {3, 32, 100}) expect_all_useful(*problem, most, "parts");
}

// Whoever reads the hub finds no room with it once it has its share, and has no other neighbour.
TEST(Groupings, are_of_useful_sizes_where_thousands_read_one_op) {
  TimedGraph graph;
  const TensorId hub = graph.op("hub", 1, {});
  for (int i = 0; i < 50'000; ++i) graph.op("reader" + std::to_string(i), 1 + i % 3, {hub});
  const auto problem = grouped_on_two(graph);
  const UnitGraph units = group_to_size(*problem, 200);
  EXPECT_LE(units.size(), 200U);
  Nanoseconds total = 0;
  Nanoseconds longest = 0;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    total += units.mean_duration(unit);
    longest = std::max(longest, units.mean_duration(unit));
  }
  EXPECT_LE(longest * 200, total + total / 2);
}

// Ops that read several of the latest, in a few parts, one op of twenty much longer than others.
std::shared_ptr<const Problem> random_parts(Rng& rng) {
  TimedGraph graph;
  const std::uint64_t parts = 1 + rng.below(30);
  std::vector<std::vector<TensorId>> made(parts);
  for (int i = 0; i < 600; ++i) {
    std::vector<TensorId>& part = made[rng.below(3) == 0 ? rng.below(parts) : 0];
    std::set<TensorId> inputs;
    for (std::uint64_t n = rng.below(4); n > 0 && !part.empty(); --n) {
      inputs.insert(part[part.size() - 1 - rng.below(std::min<std::uint64_t>(part.size(), 20))]);
    }
    const auto us = static_cast<std::int64_t>(rng.below(20) == 0 ? 30 : rng.below(6));
    part.push_back(graph.op("op" + std::to_string(i), us, {inputs.begin(), inputs.end()},
                            static_cast<Bytes>(rng.below(10'000))));
  }
  return grouped_on_two(graph);
}

TEST(Groupings, are_of_useful_sizes_on_random_graphs) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    Rng rng = Rng(7).split(i);
    const auto problem = random_parts(rng);
    // Up to 22 units, no op takes more than half of a share.
    for (const std::int64_t most : {4, 12, 20}) {
      expect_all_useful(*problem, most, std::to_string(i));
      expect_sound(group_to_size(*problem, most));
      expect_sound(group_to_size_acyclic(*problem, most));
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(Groupings, are_of_useful_sizes_on_captured_steps) {
  const auto cluster = std::make_shared<const Cluster>(preset_cluster("4xp100"));
  for (const char* name : {"bert-base-b24", "resnet50-b32", "vgg16-b32"}) {
    const auto problem = compile(std::make_shared<const Graph>(captured(name)), cluster);
    for (const std::int64_t most : {32, 100, 200}) expect_all_useful(*problem, most, name);
  }
}

TEST(Groupings, make_useful_neighbourhoods) {
  const auto problem = chain_beside_pairs();
  const UnitGraph units = group_by_colocation(*problem);
  const torch::Tensor of_unit = neighbourhoods_of(units, 100, torch::kCPU);
  std::vector<Nanoseconds> times(100);
  Nanoseconds total = 0;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    const auto neighbourhood = of_unit[unit].item<std::int64_t>();
    times.at(static_cast<std::size_t>(neighbourhood)) += units.mean_duration(unit);
    total += units.mean_duration(unit);
  }
  EXPECT_LE(*std::max_element(times.begin(), times.end()) * 100, total + total / 2);
}

// Two short ops with parameters that fill a device together, beside long ones without any.
TEST(Groupings, hold_no_more_than_a_device_where_that_can_be) {
  TimedGraph graph;
  TensorId at = graph.source("x", "input", 10);
  for (int i = 0; i < 4; ++i) {
    at = graph.op("short" + std::to_string(i), 1,
                  {at, graph.parameter("p" + std::to_string(i), 30'000)}, 10);
  }
  for (int i = 0; i < 6; ++i) at = graph.op("long" + std::to_string(i), 100, {at}, 10);
  const auto problem = compile_timed(graph.build(), gpu_cluster(2, 80'000));
  for (const UnitGraph& units : {group_to_size(*problem, 8), group_to_size_acyclic(*problem, 8)}) {
    for (UnitId unit = 0; unit < units.size(); ++unit) {
      Bytes memory = 0;
      for (const GroupId group : units.groups(unit)) memory += problem->group_resident_bytes(group);
      EXPECT_LE(memory, 80'000);
    }
  }
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
  const auto problem = grouped_on_two(graph);
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
  ASSERT_EQ(adjacency.columns, 2 * adjacency.rows);
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    for (UnitId other = 0; other < units.size(); ++other) {
      const auto successors = units.successors(unit);
      const bool feeds = std::find(successors.begin(), successors.end(), other) != successors.end();
      EXPECT_EQ(adjacency.at(unit, other), feeds ? 1 : 0);
      EXPECT_EQ(adjacency.at(other, units.size() + unit), feeds ? 1 : 0);
    }
  }
}

// Two units that feed each other are not taken for strangers.
TEST(Features, keep_both_directions_of_units_that_feed_each_other) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {});
  const TensorId b = graph.op("b", 10, {a});
  graph.op("c", 10, {b});
  const auto problem = grouped_on_two(graph);
  const Matrix adjacency = adjacency_features(UnitGraph(*problem, {0, 1, 0}));
  EXPECT_EQ(adjacency.values, (std::vector<float>{0, 1, 0, 1, 1, 0, 1, 0}));
}

}  // namespace
}  // namespace emplace::learn
