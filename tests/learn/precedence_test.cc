#include "learn/units/precedence.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "cluster/presets.h"

#include "learn/encoders/message_passing.h"
#include "learn/unit_cycles.h"
#include "learn/units/groupings.h"
#include "support/captures.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

// Ordered pairs of units.
struct Counts {
  std::int64_t ancestors = 0;
  std::int64_t descendants = 0;
  std::int64_t parallel = 0;
  std::int64_t both = 0;  // ancestors and descendants
};

Counts count_relatives(const Precedence& precedence) {
  const Relations relations(precedence.successors, torch::kCPU);
  const torch::Tensor all = torch::arange(static_cast<std::int64_t>(precedence.order.size()));
  const torch::Tensor ancestors = relations.of(Relations::kAncestors, all);
  const torch::Tensor descendants = relations.of(Relations::kDescendants, all);
  const auto sum = [](const torch::Tensor& pairs) {
    return static_cast<std::int64_t>(pairs.sum().item<double>());
  };
  return {.ancestors = sum(ancestors),
          .descendants = sum(descendants),
          .parallel = sum(relations.of(Relations::kParallel, all)),
          .both = sum(ancestors * descendants)};
}

// The lists are of the same edges, and every unit comes once, after its predecessors.
void expect_order(const Precedence& precedence) {
  const std::size_t units = precedence.successors.size();
  ASSERT_EQ(precedence.order.size(), units);
  std::vector<std::size_t> place(units, units);
  for (std::size_t i = 0; i < units; ++i) place[precedence.order[i]] = i;
  EXPECT_EQ(precedence.successors.total(), precedence.predecessors.total());
  for (UnitId unit = 0; unit < units; ++unit) {
    EXPECT_LT(place[unit], units);
    for (const UnitId next : precedence.successors[unit]) {
      EXPECT_LT(place[unit], place[next]);
      const auto back = precedence.predecessors[next];
      EXPECT_TRUE(std::find(back.begin(), back.end(), unit) != back.end());
    }
  }
}

std::int64_t pairs_of(const UnitGraph& units) {
  return static_cast<std::int64_t>(units.size()) * (units.size() - 1);
}

// Two layers and a branch beside the second, backwards, with updates: every parameter is colocated
// with its update, and read by the forward and the backward op of its layer.
std::shared_ptr<const Problem> training_step() {
  TimedGraph graph;
  const TensorId x = graph.source("x", "input");
  const TensorId w1 = graph.parameter("w1");
  const TensorId w2 = graph.parameter("w2");
  const TensorId f1 = graph.op("f1", 10, {x, w1});
  const TensorId f2 = graph.op("f2", 10, {f1, w2});
  const TensorId side = graph.op("side", 10, {f1});
  const TensorId loss = graph.op("loss", 10, {f2, side});
  const TensorId b2 = graph.backward("b2", 10, {loss, w2, f1});
  const TensorId b1 = graph.backward("b1", 10, {b2, w1, x});
  graph.update("u2", 1, {w2, b2});
  graph.update("u1", 1, {w1, b1});
  return compile_timed(graph.build(), gpu_cluster(2));
}

TEST(Precedence, relates_the_ops_of_a_training_step) {
  const auto problem = training_step();
  const UnitGraph units = group_by_colocation(*problem);
  ASSERT_EQ(units.size(), 9U);  // x, w1 and u1, w2 and u2, f1, f2, side, loss, b2, b1
  const Precedence precedence = precedence_of(units);
  expect_order(precedence);
  const auto unit = [&](const char* name) {
    return units.unit_of_op(*problem->graph().find_op(name));
  };
  EXPECT_EQ(unit("w1"), unit("u1"));
  // Parallel are f2 and side, the second update and b1, both updates.
  const Counts counts = count_relatives(precedence);
  EXPECT_EQ(counts.both, 0);
  EXPECT_EQ(counts.parallel, 2 * 3);
  EXPECT_EQ(counts.ancestors, 36 - 3);
  EXPECT_EQ(counts.descendants, 36 - 3);
  // The updates are the last, though their parameters are the first ops.
  EXPECT_EQ(precedence.order.front(), unit("x"));
  EXPECT_EQ(precedence.order.back(), unit("u1"));
  EXPECT_TRUE(precedence.successors[unit("u1")].empty());
}

// Colocation binds the first op and the last: of the cycle, what leads to later ops counts.
TEST(Precedence, breaks_cycles_of_colocation_where_the_units_first_ops_are) {
  TimedGraph graph;
  const TensorId a = graph.add({.name = "a", .type = "compute", .colocate = "ends"}, 10);
  const TensorId b = graph.op("b", 10, {a});
  const TensorId c = graph.op("c", 10, {b});
  graph.add({.name = "d", .type = "compute", .inputs = {c}, .colocate = "ends"}, 10);
  graph.op("e", 10, {c});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const Precedence precedence = precedence_of(group_by_colocation(*problem));
  expect_order(precedence);
  EXPECT_EQ(precedence.order, (std::vector<UnitId>{0, 1, 2, 3}));
  EXPECT_EQ(precedence.successors.total(), 3U);
}

TEST(Precedence, is_acyclic_on_random_problems_and_groupings) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    Rng rng = Rng(17).split(i);
    const auto problem = random_problem(rng);
    std::vector<std::uint32_t> anyhow(problem->num_groups());
    for (std::uint32_t& label : anyhow) label = static_cast<std::uint32_t>(rng.below(5));
    for (const UnitGraph& units :
         {group_by_colocation(*problem), group_to_size(*problem, 4),
          group_to_size_acyclic(*problem, 4), UnitGraph(*problem, anyhow)}) {
      const Precedence precedence = precedence_of(units);
      expect_order(precedence);
      const Counts counts = count_relatives(precedence);
      EXPECT_EQ(counts.both, 0);
      EXPECT_EQ(counts.ancestors + counts.descendants + counts.parallel, pairs_of(units));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << describe(*problem, {}, {});
  }
}

TEST(Precedence, has_ancestors_descendants_and_parallel_units_in_captured_steps) {
  const auto cluster = std::make_shared<const Cluster>(preset_cluster("4xp100"));
  for (const char* name : {"bert-base-b24", "resnet50-b32", "vgg16-b32"}) {
    const auto problem = compile(std::make_shared<const Graph>(captured(name)), cluster);
    EXPECT_TRUE(has_cycle(group_to_size(*problem, 32))) << name;
    for (const UnitGraph& units :
         {group_to_size_acyclic(*problem, 32), group_to_size_acyclic(*problem, 100),
          group_as_colocrl(*problem, {.most_units = 100, .acyclic = true})}) {
      EXPECT_FALSE(has_cycle(units)) << name;
      const Precedence precedence = precedence_of(units);
      expect_order(precedence);
      const Counts counts = count_relatives(precedence);
      EXPECT_EQ(counts.both, 0) << name;
      EXPECT_EQ(counts.ancestors, counts.descendants) << name;
      EXPECT_GT(counts.parallel, 0) << name;
      EXPECT_GT(counts.ancestors, pairs_of(units) / 4) << name;
    }
  }
}

// A long chain of which every op is read again on the way back, as training steps are: forward and
// backward ops are in different units.
TEST(Precedence, keeps_forward_and_backward_apart) {
  TimedGraph graph;
  std::vector<TensorId> forward{graph.source("x", "input")};
  for (int i = 0; i < 200; ++i) {
    forward.push_back(graph.op("f" + std::to_string(i), 10, {forward.back()}, 50'000));
  }
  TensorId at = forward.back();
  for (int i = 199; i >= 0; --i) {
    at = graph.backward("b" + std::to_string(i), 20, {at, forward[static_cast<std::size_t>(i)]});
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const UnitGraph units = group_to_size_acyclic(*problem, 16);
  EXPECT_EQ(units.size(), 16U);
  EXPECT_FALSE(has_cycle(units));
  int mixed = 0;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    bool has_forward = false;
    bool has_backward = false;
    for (const GroupId group : units.groups(unit)) {
      const OpId op = problem->group_ops(group).front();
      (problem->graph().phase(op) == Phase::kForward ? has_forward : has_backward) = true;
    }
    mixed += has_forward && has_backward ? 1 : 0;
  }
  EXPECT_LE(mixed, 1);  // where the one ends and the other begins
}

}  // namespace
}  // namespace emplace::learn
