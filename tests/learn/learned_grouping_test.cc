#include "learn/methods/learned_grouping.h"

#include <gtest/gtest.h>

#include "learn/methods/episode_policy.h"
#include "learn/sampled_gradient.h"
#include "learn/unit_cycles.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> chain_of_nine() {
  TimedGraph graph;
  TensorId at = graph.op("first", 100, {});
  for (const char* name : {"b", "c", "d", "e", "f", "g", "h", "last"}) {
    at = graph.op(name, 100, {at});
  }
  return compile_timed(graph.build(), gpu_cluster(2));
}

// A chain, and on the way back each op reads what it made, as backward ops do.
std::shared_ptr<const Problem> there_and_back(int length) {
  TimedGraph graph;
  std::vector<TensorId> forward{graph.op("x", 10, {})};
  for (int i = 1; i < length; ++i) {
    forward.push_back(graph.op("f" + std::to_string(i), 10, {forward.back()}, 50'000));
  }
  TensorId at = forward.back();
  for (int i = length; i-- > 0;) {
    at = graph.backward("b" + std::to_string(i), 10, {at, forward[static_cast<std::size_t>(i)]});
  }
  return compile_timed(graph.build(), gpu_cluster(2));
}

LearnedGrouping grouping_of(const Problem& problem, std::int64_t groups) {
  Rng rng(1);
  return LearnedGrouping(group_by_colocation(problem), groups, {.learning_rate = 0.01}, torch::kCPU,
                         rng);
}

TEST(LearnedGrouping, begins_with_slices) {
  const auto problem = chain_of_nine();
  const UnitGraph units = grouping_of(*problem, 3).likeliest();
  ASSERT_EQ(units.size(), 3U);
  for (OpId op = 0; op < 9; ++op) EXPECT_EQ(units.unit_of_op(op), op / 3);
}

TEST(LearnedGrouping, closes_no_cycle) {
  const auto problem = there_and_back(30);
  LearnedGrouping grouping = grouping_of(*problem, 6);
  const UnitGraph first = grouping.likeliest();
  EXPECT_EQ(first.size(), 6U);
  EXPECT_FALSE(has_cycle(first));
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    const UnitGraph units = grouping.draw(rng);
    EXPECT_LE(units.size(), 6U);
    ASSERT_FALSE(has_cycle(units));
    TrainingPoint point;
    grouping.learn(rng.uniform(), point);
  }
}

TEST(LearnedGrouping, has_no_more_groups_than_members) {
  const auto problem = chain_of_nine();
  EXPECT_LE(grouping_of(*problem, 100).likeliest().size(), 9U);
}

// Of two groups the op in the middle may be in either.
TEST(LearnedGrouping, learns_what_costs_less) {
  const auto problem = chain_of_nine();
  LearnedGrouping grouping = grouping_of(*problem, 2);
  Rng rng(2);
  const auto draw = [&] {
    const UnitGraph units = grouping.draw(rng);
    return units.unit_of_op(4) == units.unit_of_op(0);
  };
  int with_the_first = 0;
  for (int i = 0; i < 100; ++i) with_the_first += draw() ? 1 : 0;
  EXPECT_GT(with_the_first, 10);
  EXPECT_LT(with_the_first, 90);
  TrainingPoint point;
  for (int i = 0; i < 100; ++i) grouping.learn(draw() ? 1 : 2, point);
  EXPECT_GE(point.groups_used.value(), 1);
  EXPECT_LE(point.groups_used.value(), 2);
  EXPECT_LE(point.groups_changed.value(), 1.0 / 9);
  with_the_first = 0;
  for (int i = 0; i < 100; ++i) with_the_first += draw() ? 1 : 0;
  EXPECT_GT(with_the_first, 95);
}

// All groupings of three members into two groups, by a grouper of the same parameters.
TEST(LearnedGrouping, learns_along_the_gradient_of_the_expected_cost) {
  TimedGraph graph;
  TensorId at = graph.op("a", 100, {});
  for (const char* name : {"b", "c"}) at = graph.op(name, 100, {at});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  Rng rng(1);
  LearnedGrouping grouping(group_by_colocation(*problem), 2, {.adam = false, .learning_rate = 1},
                           torch::kCPU, rng);
  const auto cost_of = [](const UnitGraph& units) {
    return 1.0 + 2.0 * units.unit_of_op(1) + 4.0 * units.unit_of_op(2);
  };
  Rng first(1);
  Parameters parameters(torch::kCPU);
  const UnitGraph members = group_by_colocation(*problem);
  const Grouper grouper(parameters, members, 2, {.first_groups = FirstGroups::kStages}, first);
  StateWriter begun;
  {
    // Far enough from its slices that all has a chance, with a baseline.
    TrainingPoint point;
    grouping.draw(rng);
    grouping.learn(3, point);
    StateWriter state;
    grouping.save(state);
    const StateReader reader(state.bytes(), "state");
    const torch::NoGradGuard no_gradients;
    for (auto& [name, tensor] : parameters.named()) {
      torch::Tensor values = tensor;
      reader.load("policy." + name, values);
      if (name.starts_with("grouper.output")) values.copy_(normals(values.sizes().vec(), rng) * 8);
      begun.put("policy." + name, values);
    }
    begun.put("baseline", reader.reals("baseline"));
    Optimizer({.adam = false, .learning_rate = 1}).save(begun, "grouper.optimizer");
  }
  const torch::Tensor log_probs = torch::log_softmax(grouper.logits(), 1);
  torch::Tensor expected = torch::zeros({});
  int likely = 0;
  for (std::uint32_t code = 0; code < 8; ++code) {
    const std::vector<std::uint32_t> labels{code & 1, code >> 1 & 1, code >> 2};
    torch::Tensor log_prob = torch::zeros({});
    for (std::int64_t i = 0; i < 3; ++i) {
      log_prob = log_prob + log_probs[i][static_cast<std::int64_t>(labels[i])];
    }
    likely += log_prob.item<double>() > -6 ? 1 : 0;
    expected = expected + log_prob.exp() * cost_of(group_as_labelled(*problem, labels, 2));
  }
  EXPECT_GE(likely, 3);
  const auto exact = torch::autograd::grad({expected}, parameters.tensors());
  const StateReader beginning(begun.bytes(), "state");
  Estimates estimates;
  for (int i = 0; i < 2000; ++i) {
    grouping.load(beginning);
    TrainingPoint point;
    grouping.learn(cost_of(grouping.draw(rng)), point);
    StateWriter state;
    grouping.save(state);
    const StateReader reader(state.bytes(), "state");
    std::vector<torch::Tensor> step;
    for (const auto& [name, tensor] : parameters.named()) {
      step.push_back(tensor.detach() - reader.tensor("policy." + name));
    }
    estimates.add(step, exact);
  }
  estimates.expect_unbiased();
}

TEST(LearnedGrouping, one_policy_plays_on_all_of_its_groupings) {
  const auto problem = chain_of_nine();
  LearnedGrouping grouping = grouping_of(*problem, 2);
  Rng rng(2);
  const EpisodePolicy first(grouping.likeliest(), {.rounds = 2}, true, torch::kCPU, rng);
  const EpisodePolicy second = first.on(group_by_colocation(*problem));
  EXPECT_EQ(second.units().size(), 9U);
  const EpisodePolicy again = second.on(grouping.likeliest());
  PlacementState state{{0, 1}, {0, 0}, {0, 1}, 1};
  const PlacementState* one = &state;
  EXPECT_TRUE(torch::equal(first.log_probs({&one, 1}), again.log_probs({&one, 1})));
  for (std::size_t i = 0; i < first.parameters().named().size(); ++i) {
    EXPECT_TRUE(
        first.parameters().named()[i].second.is_same(second.parameters().named()[i].second));
  }
}

}  // namespace
}  // namespace emplace::learn
