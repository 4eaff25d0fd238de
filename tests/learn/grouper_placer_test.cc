#include "learn/policies/grouper_placer.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "learn/learners/reinforce.h"
#include "learn/policies/grouper.h"
#include "learn/policies/policy.h"
#include "learn/sampled_gradient.h"
#include "learn/units/group_embedding.h"
#include "learn/units/groupings.h"
#include "learn/units/orders.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace::learn {
namespace {

constexpr double kNever = -1e8;

// a -> b -> d, a -> c -> d; four types of op, one output each.
std::shared_ptr<const Problem> hand_made() {
  GraphBuilder builder("diamond");
  const auto add = [&](const std::string& name, const std::string& type,
                       std::vector<TensorId> inputs, std::vector<std::int64_t> shape) {
    return builder.add({.name = name,
                        .type = type,
                        .inputs = std::move(inputs),
                        .time_us = {{"gpu", Decimal{1, 0}}}},
                       {{.shape = std::move(shape), .dtype = DType::kFloat32}})[0];
  };
  const TensorId a = add("a", "first", {}, {3, 7});
  const TensorId b = add("b", "middle", {a}, {5});
  const TensorId c = add("c", "middle", {a}, {9, 7});
  add("d", "last", {b, c}, {1});
  return compile_timed(std::make_shared<const Graph>(std::move(builder).build()), gpu_cluster(2));
}

std::shared_ptr<const Problem> plain_chain(int length, int devices) {
  TimedGraph graph;
  TensorId last = graph.op("op0", 1, {});
  for (int i = 1; i < length; ++i) last = graph.op("op" + std::to_string(i), 1 + i % 3, {last});
  return compile_timed(graph.build(), gpu_cluster(devices));
}

GrouperPlacerSettings small() {
  return {.groups = 5, .hidden = 6, .type_width = 3, .width = 8, .share_grouping = 3};
}

PolicyPtr policy_of(const Problem& problem, const GrouperPlacerSettings& settings,
                    std::uint64_t seed = 1) {
  Rng rng(seed);
  return grouper_placer_policy(group_by_colocation(problem), settings, "cpu", rng);
}

// Larger weights than at first, so that probabilities differ much.
void sharpen(Policy& policy, double factor) {
  const torch::NoGradGuard no_gradients;
  for (torch::Tensor& tensor : policy.parameters().tensors()) tensor.mul_(factor);
}

TEST(GroupEmbedding, counts_edges_types_and_outputs_without_overlap) {
  const auto problem = hand_made();
  const UnitGraph units = group_by_colocation(*problem);
  ASSERT_EQ(units.size(), 4U);
  const GroupEmbedding embed(units, 4);
  // {a, b} is group 3, {c} group 1, {d} group 2; group 0 is empty.
  const EmbeddedGroups embedded = embed(std::vector<std::int64_t>{3, 3, 1, 2});
  EXPECT_EQ(embedded.groups, (std::vector<std::int64_t>{1, 2, 3}));
  ASSERT_EQ(embedded.values.columns, 4 + 4 + 3 + GroupEmbedding::kSums);
  const auto row = [&](std::int64_t index, std::int64_t first, std::int64_t count) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(embedded.values.at(index, first + i));
    return values;
  };
  using Values = std::vector<float>;
  // Edges to groups 0 .. 3: c -> d; none; a -> b within, a -> c, b -> d. Each by its maximum + 1.
  EXPECT_EQ(row(0, 0, 4), (Values{0, 0, 0.5, 0}));
  EXPECT_EQ(row(1, 0, 4), (Values{0, 0, 0, 0}));
  EXPECT_EQ(row(2, 0, 4), (Values{0, 0.5, 0.5, 0.5}));
  // Edges from groups 0 .. 3.
  EXPECT_EQ(row(0, 4, 4), (Values{0, 0, 0, 0.5}));
  EXPECT_EQ(row(1, 4, 4), (Values{0, 0.5, 0, 0.5}));
  EXPECT_EQ(row(2, 4, 4), (Values{0, 0, 0, 0.5}));
  // first, middle, last.
  EXPECT_EQ(row(0, 8, 3), (Values{0, 0.5, 0}));
  EXPECT_EQ(row(1, 8, 3), (Values{0, 0, 0.5}));
  EXPECT_EQ(row(2, 8, 3), (Values{0.5, 0.5, 0}));
  // Sums: the first dimensions are 3, 5, 9, 1; the second ones 7, 0, 7, 0.
  const auto share = [](double part, double all) {
    return static_cast<float>(std::log1p(part) / std::log1p(all));
  };
  EXPECT_FLOAT_EQ(embedded.values.at(2, 11), share(3 + 5, 18));
  EXPECT_FLOAT_EQ(embedded.values.at(0, 11), share(9, 18));
  EXPECT_FLOAT_EQ(embedded.values.at(2, 12), share(7, 14));
  EXPECT_FLOAT_EQ(embedded.values.at(1, 12), 0);
  const std::int64_t bytes = embedded.values.columns - 1;
  EXPECT_FLOAT_EQ(embedded.values.at(2, bytes - 1), share(2, 4));
  EXPECT_FLOAT_EQ(embedded.values.at(2, bytes), share(4 * (21 + 5), 4 * (21 + 5 + 63 + 1)));
}

// Three ops that must be together, one of which another reads twice over.
TEST(GroupEmbedding, counts_edges_between_ops_within_units_and_between_them) {
  TimedGraph graph;
  const TensorId a = graph.add({.name = "a", .type = "x", .colocate = "one"}, 1);
  const TensorId b = graph.add({.name = "b", .type = "x", .inputs = {a}, .colocate = "one"}, 1);
  const TensorId c = graph.add({.name = "c", .type = "x", .inputs = {a, b}, .colocate = "one"}, 1);
  graph.op("d", 1, {a, b, c});
  graph.op("e", 1, {c});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const UnitGraph units = group_by_colocation(*problem);
  ASSERT_EQ(units.size(), 3U);
  const GroupEmbedding embed(units, 3);
  const EmbeddedGroups embedded = embed(std::vector<std::int64_t>{0, 1, 2});
  // a -> b, a -> c, b -> c within; a, b and c -> d; c -> e. Each by the maximum + 1.
  EXPECT_FLOAT_EQ(embedded.values.at(0, 0), 0.75);
  EXPECT_FLOAT_EQ(embedded.values.at(0, 1), 0.75);
  EXPECT_FLOAT_EQ(embedded.values.at(0, 2), 0.25);
  EXPECT_FLOAT_EQ(embedded.values.at(1, 3), 0.75);
  EXPECT_FLOAT_EQ(embedded.values.at(2, 3), 0.5);
}

TEST(Grouper, sees_its_nearest_neighbours) {
  const auto problem = hand_made();
  const Matrix places = neighbour_features(group_by_colocation(*problem));
  ASSERT_EQ(places.columns, 12);
  EXPECT_FLOAT_EQ(places.at(3, 0), 0.75);  // d reads c, then b
  EXPECT_FLOAT_EQ(places.at(3, 1), 0.5);
  EXPECT_FLOAT_EQ(places.at(3, 2), 0);
  EXPECT_FLOAT_EQ(places.at(0, 6), 0.5);  // a is read by b, then c
  EXPECT_FLOAT_EQ(places.at(0, 7), 0.75);
  EXPECT_FLOAT_EQ(places.at(0, 0), 0);
}

void expect_scores_as_sampled(Policy& policy, std::int64_t count, Rng& rng) {
  const Samples samples = policy.sample(count, rng);
  const Scores scores = policy.score(samples);
  ASSERT_EQ(scores.log_probs.sizes(), samples.log_probs.sizes());
  EXPECT_LT((scores.log_probs - samples.log_probs).abs().max().item<double>(), 1e-5);
  // Any part of the batch alone scores alike.
  const Samples part = samples.slice(1, count - 2);
  const torch::Tensor again = policy.score(part).log_probs;
  EXPECT_LT((again - part.log_probs).abs().max().item<double>(), 1e-5);
  // The distributions are what the log-probabilities come from.
  const std::int64_t units = scores.distributions[0].size(1);
  const std::int64_t groups = scores.distributions[1].size(1);
  const torch::Tensor of_units = log_prob_of(scores.distributions[0].expand({count, -1, -1}),
                                             samples.actions.narrow(1, 0, units));
  const torch::Tensor of_groups =
      log_prob_of(scores.distributions[1], samples.actions.narrow(1, units, groups));
  EXPECT_TRUE(torch::allclose(torch::cat({of_units, of_groups}, 1), scores.log_probs));
}

TEST(GrouperPlacer, scores_as_it_samples_with_and_without_noise) {
  Rng rng(7);
  for (int i = 0; i < 10; ++i) {
    const auto problem = random_problem(rng);
    for (const FirstGroups first :
         {FirstGroups::kSlices, FirstGroups::kWeights, FirstGroups::kDrawn}) {
      GrouperPlacerSettings settings = small();
      settings.first_groups = first;
      const PolicyPtr policy = policy_of(*problem, settings);
      if (first != FirstGroups::kSlices) sharpen(*policy, 3);
      policy->begin_round(0);
      expect_scores_as_sampled(*policy, 8, rng);
      policy->begin_round(750);
      expect_scores_as_sampled(*policy, 8, rng);
    }
  }
}

TEST(GrouperPlacer, explores_by_noise_in_the_first_rounds_alone) {
  const auto problem = plain_chain(12, 2);
  GrouperPlacerSettings settings = small();
  settings.first_groups = FirstGroups::kWeights;
  const PolicyPtr policy = policy_of(*problem, settings);
  Rng rng(2);
  policy->begin_round(749);
  const Samples noisy = policy->sample(3, rng);
  EXPECT_EQ(noisy.context.size(), 3U);
  policy->begin_round(750);
  EXPECT_EQ(policy->sample(3, rng).context.size(), 1U);
  Samples silent = noisy;
  silent.context.resize(1);
  const torch::Tensor difference = (policy->score(silent).log_probs - noisy.log_probs).abs();
  EXPECT_GT(difference.narrow(1, 0, 12).max().item<double>(), 1e-4);
  EXPECT_GT(difference.narrow(1, 12, 5).max().item<double>(), 1e-4);
}

TEST(GrouperPlacer, begins_with_slices_of_equal_time) {
  const auto problem = plain_chain(300, 2);
  const UnitGraph units = group_by_colocation(*problem);
  const PolicyPtr policy = policy_of(*problem, small());
  Rng rng(4);
  const torch::Tensor groups = policy->sample(1, rng).actions[0];
  std::vector<Nanoseconds> time(5, 0);
  std::int64_t changes = 0;
  std::int64_t last = -1;
  for (const UnitId unit : locality_order(units)) {
    const auto group = groups[unit].item<std::int64_t>();
    time[static_cast<std::size_t>(group)] += units.mean_duration(unit);
    changes += group != last ? 1 : 0;
    last = group;
  }
  const Nanoseconds all = std::accumulate(time.begin(), time.end(), Nanoseconds{0});
  for (const Nanoseconds part : time) {
    EXPECT_NEAR(static_cast<double>(part) / static_cast<double>(all), 0.2, 0.05);
  }
  EXPECT_LT(changes, 60);  // but for units near the edges, which go either way
}

TEST(GrouperPlacer, shares_groupings_between_samples) {
  const auto problem = plain_chain(30, 2);
  GrouperPlacerSettings settings = small();
  settings.first_groups = FirstGroups::kWeights;
  const PolicyPtr policy = policy_of(*problem, settings);
  Rng rng(3);
  {
    // At first groups are all but certain.
    const torch::NoGradGuard no_gradients;
    for (torch::Tensor parameter : policy->parameters().tensors()) parameter.mul_(0.01);
  }
  const Samples samples = policy->sample(7, rng);
  const torch::Tensor units = samples.actions.narrow(1, 0, 30);
  EXPECT_TRUE(torch::equal(units[0], units[2]));
  EXPECT_FALSE(torch::equal(units[2], units[3]));
  EXPECT_TRUE(torch::equal(units[3], units[5]));
  EXPECT_FALSE(torch::equal(units[5], units[6]));
}

TEST(GrouperPlacer, decides_nothing_about_empty_groups) {
  const auto problem = plain_chain(4, 3);
  GrouperPlacerSettings settings = small();
  settings.groups = 4;
  const PolicyPtr policy = policy_of(*problem, settings);
  Samples samples = policy->actions_for(Placement{1, 1, 1, 1});
  const Scores scores = policy->score(samples);
  const torch::Tensor of_groups = scores.log_probs.narrow(1, 4, 4);
  EXPECT_LT(of_groups[0][0].item<double>(), -0.1);
  EXPECT_EQ(of_groups.narrow(1, 1, 3).abs().sum().item<double>(), 0);
  EXPECT_LT(scores.distributions[1][0][1][1].item<double>(), kNever);
}

TEST(GrouperPlacer, represents_placements) {
  Rng rng(11);
  for (int i = 0; i < 50; ++i) {
    const auto problem = random_problem(rng);
    const PolicyPtr policy = policy_of(*problem, small());
    const Placement placement = random_placement(*problem, rng);
    const Samples samples = policy->actions_for(placement);
    ASSERT_EQ(samples.size(), 1);
    // As many groups as devices at least: nothing is lost, unless units are fewer than either.
    if (problem->num_groups() >= problem->num_devices()) {
      EXPECT_EQ(policy->placement(samples, 0), placement);
    }
  }
}

TEST(GrouperPlacer, makes_groups_of_runs) {
  const auto problem = plain_chain(8, 2);
  GrouperPlacerSettings settings = small();
  settings.groups = 8;
  const PolicyPtr policy = policy_of(*problem, settings);
  const Placement placement{0, 0, 1, 1, 0, 1, 1, 1};
  const torch::Tensor groups = policy->actions_for(placement).actions[0];
  EXPECT_EQ(groups[0].item<std::int64_t>(), groups[1].item<std::int64_t>());
  EXPECT_NE(groups[0].item<std::int64_t>(), groups[4].item<std::int64_t>());
  std::set<std::int64_t> distinct;
  for (int i = 0; i < 8; ++i) distinct.insert(groups[i].item<std::int64_t>());
  EXPECT_EQ(distinct.size(), 4U);
}

TEST(GrouperPlacer, sends_ops_to_the_nearest_device_that_they_may_use) {
  ClusterSpec spec = gpu_cluster(3);
  spec.links = {{.bandwidth = 1'000'000},
                {.from = "gpu0", .to = "gpu2", .bandwidth = 1'000'000'000}};
  TimedGraph graph;
  const TensorId a = graph.op("a", 1, {});
  graph.add({.name = "b", .type = "compute", .inputs = {a}, .devices = {"gpu1", "gpu2"}}, 1);
  graph.add({.name = "c", .type = "compute", .inputs = {a}, .devices = {"gpu1"}}, 1);
  const auto problem = compile_timed(graph.build(), spec);
  GrouperPlacerSettings settings = small();
  settings.groups = 1;
  const PolicyPtr policy = policy_of(*problem, settings);
  Samples samples = policy->actions_for(Placement{0, 1, 1});
  samples.actions[0][3] = 0;
  EXPECT_EQ(policy->placement(samples, 0), (Placement{0, 2, 1}));
}

TEST(GrouperPlacer, never_chooses_a_device_that_no_op_of_a_group_may_use) {
  TimedGraph graph;
  for (int i = 0; i < 6; ++i) {
    graph.add({.name = "op" + std::to_string(i), .type = "compute", .devices = {"gpu1"}}, 1);
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(3));
  const PolicyPtr policy = policy_of(*problem, small());
  Rng rng(5);
  const Samples samples = policy->sample(6, rng);
  const torch::Tensor devices = samples.actions.narrow(1, 6, 5);
  EXPECT_EQ((devices == 2).sum().item<std::int64_t>(), 0);
  EXPECT_LT(samples.log_probs.narrow(1, 6, 5).abs().max().item<double>(), 1e-6);
}

TEST(GrouperPlacer, keeps_random_groups) {
  const auto problem = plain_chain(20, 2);
  GrouperPlacerSettings settings = small();
  settings.first_groups = FirstGroups::kDrawn;
  settings.share_grouping = 1;
  const PolicyPtr policy = policy_of(*problem, settings);
  policy->begin_round(0);
  Rng rng(6);
  const Samples samples = policy->sample(4, rng);
  const torch::Tensor units = samples.actions.narrow(1, 0, 20);
  EXPECT_TRUE(torch::equal(units[0], units[3]));
  EXPECT_EQ(samples.log_probs.narrow(1, 0, 20).abs().max().item<double>(), 0);
  expect_scores_as_sampled(*policy, 4, rng);
}

TEST(GrouperPlacer, is_told_no_more_than_is_published) {
  const auto problem = plain_chain(30, 2);
  const auto inputs_of_grouper = [&](Features features) {
    GrouperPlacerSettings settings = small();
    settings.features = features;
    const PolicyPtr policy = policy_of(*problem, settings);
    for (const auto& [name, tensor] : policy->parameters().named()) {
      if (name == "grouper.hidden.weight") return tensor.size(0);
    }
    return std::int64_t{0};
  };
  // The embedding of types, a shape, six neighbours before and six after.
  EXPECT_EQ(inputs_of_grouper(Features::kTypesAndShapes), 3 + 4 + 12);
  EXPECT_GT(inputs_of_grouper(Features::kAll), 3 + 4 + 12 + 1);
}

// A grouper can learn to put any unit into any group, whatever it began with.
TEST(GrouperPlacer, can_leave_its_slices) {
  const auto problem = plain_chain(40, 2);
  const PolicyPtr policy = policy_of(*problem, small());
  Samples wanted = policy->actions_for(Placement(40, 0));
  for (int unit = 0; unit < 40; ++unit) wanted.actions[0][unit] = 4;
  EXPECT_LT(policy->score(wanted).log_probs[0][0].item<double>(), -5);
  {
    const torch::NoGradGuard no_gradients;
    for (auto& [name, tensor] : policy->parameters().named()) {
      torch::Tensor values = tensor;
      if (name == "grouper.output.bias") values[4] = 30;
    }
  }
  EXPECT_GT(policy->score(wanted).log_probs[0].narrow(0, 0, 40).min().item<double>(), -1.5);
}

class GradientOf : public testing::TestWithParam<FirstGroups> {};

// Of all decisions about a tiny graph: the gradient of the expected cost, summed over all outcomes,
// equals the mean of cost x gradient of the log-probability, and a finite difference.
TEST_P(GradientOf, is_the_expected_costs) {
  const auto problem = plain_chain(2, 2);
  GrouperPlacerSettings settings = small();
  settings.groups = 2;
  settings.first_groups = GetParam();
  const PolicyPtr policy = policy_of(*problem, settings);
  sharpen(*policy, 2);
  if (GetParam() == FirstGroups::kSlices) {
    // Far enough from the slices that every grouping has a chance.
    const torch::NoGradGuard no_gradients;
    for (auto& [name, tensor] : policy->parameters().named()) {
      torch::Tensor values = tensor;
      Rng rng(3);
      if (name == "grouper.output.weight") values.copy_(normals(values.sizes().vec(), rng) * 2);
    }
  }
  std::vector<Samples> all;
  for (int code = 0; code < 16; ++code) {
    Samples one = policy->actions_for(Placement{0, 0});
    for (int i = 0; i < 4; ++i) one.actions[0][i] = (code >> i) & 1;
    // An empty group has the first device.
    const bool second = (code & 3) != 0;
    const bool first = (code & 3) != 3;
    if ((!first && (code & 4) != 0) || (!second && (code & 8) != 0)) continue;
    all.push_back(one);
  }
  const auto cost = [&](const Samples& one) {
    const Placement placement = policy->placement(one, 0);
    return 1.0 + 2.0 * static_cast<double>(placement[0]) + 4.0 * static_cast<double>(placement[1]) -
           5.0 * static_cast<double>(placement[0] * placement[1]);
  };
  const auto expected_cost = [&] {
    const torch::NoGradGuard no_gradients;
    double total = 0;
    double probability = 0;
    for (const Samples& one : all) {
      const double p = policy->score(one).log_probs.to(torch::kFloat64).sum().exp().item<double>();
      total += p * cost(one);
      probability += p;
    }
    EXPECT_NEAR(probability, 1, 1e-5);
    return total;
  };
  torch::Tensor loss = torch::zeros({});
  for (const Samples& one : all) {
    const torch::Tensor log_prob = policy->score(one).log_probs.sum();
    loss = loss + log_prob.detach().exp() * cost(one) * log_prob;
  }
  loss.backward();
  for (auto& [name, tensor] : policy->parameters().named()) {
    const torch::Tensor gradient = tensor.grad();
    const torch::Tensor direction = gradient / (gradient.norm() + 1e-12);
    const double step = 1e-2;
    const torch::NoGradGuard no_gradients;
    torch::Tensor values = tensor;
    values.add_(direction, step);
    const double above = expected_cost();
    values.add_(direction, -2 * step);
    const double below = expected_cost();
    values.add_(direction, step);
    const double along = (gradient * direction).sum().item<double>();
    EXPECT_NEAR((above - below) / (2 * step), along, 1e-3 + 0.02 * along) << name;
  }
}

// As published: one grouping an update, which four samples share, and noise on both networks'
// logits.
TEST(GrouperPlacer, updates_under_noise_go_along_the_expected_cost) {
  TimedGraph graph;
  graph.op("b", 200, {graph.op("a", 300, {}, 200'000)});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  GrouperPlacerSettings settings = small();
  settings.groups = 2;
  settings.first_groups = FirstGroups::kWeights;
  settings.share_grouping = 4;
  const PolicyPtr policy = policy_of(*problem, settings);
  sharpen(*policy, 2);
  policy->begin_round(0);
  const CostSettings cost{.shortage = Shortage::kPenalty};
  const LearnerPtr learner = reinforce(
      *problem, {.batch = 4, .optimizer = {.adam = false, .learning_rate = 1}, .cost = cost});
  // Of the noise of one sample, by the devices of both groups: for each grouping, the decisions.
  const auto gradient_under = [&](const Samples& one) {
    Samples all = one.slice(0, 1);
    all.actions = torch::zeros({16, 4}, torch::kInt64);
    all.context[0] = torch::arange(16).floor_divide(4);
    all.context[2] = one.context[2].narrow(0, 0, 1).expand({16, -1, -1}).contiguous();
    for (int code = 0; code < 16; ++code) {
      for (int i = 0; i < 4; ++i) all.actions[code][i] = (code >> (3 - i)) & 1;
    }
    const Costs costs(*problem, cost);
    std::vector<double> weights;
    for (const SampleOutcome& outcome : outcomes_of(*policy, *problem, all)) {
      weights.push_back(costs(outcome));
    }
    const torch::Tensor probability = policy->score(all).log_probs.to(torch::kFloat64).sum(1).exp();
    // An empty group is on the first device for certain.
    EXPECT_NEAR(probability.sum().item<double>(), 1, 1e-4);
    return torch::autograd::grad({(probability * torch::tensor(weights, torch::kFloat64)).sum()},
                                 policy->parameters().tensors());
  };
  Estimates estimates;
  Rng rng(9);
  for (int update = 0; update < 700; ++update) {
    const Samples samples = policy->sample(4, rng);
    ASSERT_EQ(samples.context.size(), 3U);
    estimates.add(step_of(*policy, *problem, *learner, samples, 1), gradient_under(samples));
  }
  estimates.expect_unbiased();
}

INSTANTIATE_TEST_SUITE_P(FirstGroups, GradientOf,
                         testing::Values(FirstGroups::kWeights, FirstGroups::kSlices),
                         [](const auto& made) {
                           return made.param == FirstGroups::kWeights ? "weights" : "slices";
                         });

}  // namespace
}  // namespace emplace::learn
