// What every policy owes its learners: scores equal to those of sampling, and a gradient that is
// the expected cost's.
#include <cmath>
#include <functional>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "learn/general/attention_policy.h"
#include "learn/general/sequence_policy.h"
#include "learn/learners/learner.h"
#include "learn/learners/ppo.h"
#include "learn/learners/reinforce.h"
#include "learn/policies/policy.h"
#include "learn/policies/segment_attention.h"
#include "learn/policies/segment_seq2seq.h"
#include "learn/policies/seq2seq.h"
#include "learn/policies/table.h"
#include "learn/sampled_gradient.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace::learn {
namespace {

struct PolicyCase {
  std::string name;
  std::function<PolicyPtr(const Problem&, Rng&)> make;
  // No gradient goes through what a segment sees of the one before, as published.
  bool cuts_gradients = false;
};

void PrintTo(const PolicyCase& policy, std::ostream* out) {
  *out << policy.name;
}

// The grouper's decisions about empty groups are no decisions: its own test enumerates the others.
std::vector<PolicyCase> policy_cases() {
  return {
      {"table", [](const Problem& problem,
                   Rng&) { return table_policy(group_by_colocation(problem), "cpu"); }},
      {"sequence",
       [](const Problem& problem, Rng& rng) {
         return sequence_policy(group_by_colocation(problem), {.width = 8}, "cpu", rng);
       }},
      {"sequence_as_published",
       [](const Problem& problem, Rng& rng) {
         return sequence_policy(group_by_colocation(problem),
                                {.features = Features::kTypesAndShapes,
                                 .waves = false,
                                 .width = 8,
                                 .by_locality = false,
                                 .blocks = 0},
                                "cpu", rng);
       }},
      {"sequence_that_sees_its_unit",
       [](const Problem& problem, Rng& rng) {
         return sequence_policy(
             group_by_colocation(problem),
             {.width = 8, .bidirectional = true, .decoder_sees_unit = true, .tanh_constant = 5},
             "cpu", rng);
       }},
      {"segments",
       [](const Problem& problem, Rng& rng) {
         return segment_sequence_policy(
             group_by_colocation(problem),
             {.encoder_layers = 2, .encoder_width = 6, .width = 8, .segment = 3, .blocks = 2},
             "cpu", rng);
       }},
      {"two_segments",
       [](const Problem& problem, Rng& rng) {
         return segment_sequence_policy(
             group_by_colocation(problem),
             {.encoder_layers = 2, .encoder_width = 6, .width = 8, .segment = 2, .blocks = 2},
             "cpu", rng);
       }},
      {"two_segments_that_are_computed_again",
       [](const Problem& problem, Rng& rng) {
         return segment_sequence_policy(group_by_colocation(problem),
                                        {.encoder_layers = 2,
                                         .encoder_width = 6,
                                         .width = 8,
                                         .segment = 2,
                                         .blocks = 2,
                                         .most_bytes_kept = 0},
                                        "cpu", rng);
       }},
      {"segments_as_published",
       [](const Problem& problem, Rng& rng) {
         return segment_sequence_policy(group_by_colocation(problem),
                                        {.features = Features::kTypesAndShapes,
                                         .waves = false,
                                         .encoder_layers = 2,
                                         .encoder_width = 6,
                                         .width = 8,
                                         .segment = 3,
                                         .by_locality = false,
                                         .additive_attention = true,
                                         .blocks = 0},
                                        "cpu", rng);
       }},
      {"segments_on_any_devices",
       [](const Problem& problem, Rng& rng) {
         return general_sequence_policy(group_by_colocation(problem), {.width = 8}, "cpu", rng);
       }},
      {"attention_on_any_devices",
       [](const Problem& problem, Rng& rng) {
         return general_attention_policy(group_by_colocation(problem), {.width = 8, .layers = 1},
                                         "cpu", rng);
       }},
      {"attention_on_any_devices_in_neighbourhoods",
       [](const Problem& problem, Rng& rng) {
         return general_attention_policy(group_by_colocation(problem), {.width = 8, .layers = 1},
                                         "cpu", rng, /*neighbourhoods=*/2);
       }},
      {"attention_on_any_devices_without_superposition",
       [](const Problem& problem, Rng& rng) {
         return general_attention_policy(group_by_colocation(problem),
                                         {.width = 8, .layers = 2, .superposition = false}, "cpu",
                                         rng);
       }},
      {"segment_attention",
       [](const Problem& problem, Rng& rng) {
         return segment_attention_policy(
             group_by_colocation(problem),
             {.sage_width = 4, .sage_layers = 2, .width = 8, .heads = 2, .segment = 3, .spread = 1},
             "cpu", rng);
       }},
      {"segment_attention_with_memory",
       [](const Problem& problem, Rng& rng) {
         return segment_attention_policy(
             group_by_colocation(problem),
             {.sage_width = 4, .sage_layers = 2, .width = 8, .heads = 2, .segment = 2, .spread = 1},
             "cpu", rng);
       },
       /*cuts_gradients=*/true},
      {"segment_attention_as_published",
       [](const Problem& problem, Rng& rng) {
         return segment_attention_policy(group_by_colocation(problem),
                                         {.features = Features::kTypesAndShapes,
                                          .coordinates = 0,
                                          .sage_width = 4,
                                          .sage_layers = 2,
                                          .width = 8,
                                          .heads = 2,
                                          .segment = 3,
                                          .spread = 0},
                                         "cpu", rng);
       }},
      {"segment_attention_in_neighbourhoods",
       [](const Problem& problem, Rng& rng) {
         return segment_attention_policy(group_by_colocation(problem),
                                         {.sage_width = 4,
                                          .sage_layers = 2,
                                          .width = 8,
                                          .heads = 2,
                                          .segment = 3,
                                          .spread = 1,
                                          .neighbourhoods = 2},
                                         "cpu", rng);
       }},
  };
}

// Weights far enough from their start that nothing is symmetric.
void disturb(Policy& policy, Rng& rng, double size) {
  const torch::NoGradGuard no_gradients;
  for (torch::Tensor parameter : policy.parameters().tensors()) {
    parameter.add_(normals(parameter.sizes().vec(), rng), size);
  }
}

class PolicyChecks : public testing::TestWithParam<PolicyCase> {};

TEST_P(PolicyChecks, scores_samples_as_it_drew_them) {
  for (const TinyCase& tiny : tiny_cases()) {
    Rng rng(7);
    const PolicyPtr policy = GetParam().make(*tiny.problem, rng);
    disturb(*policy, rng, 0.3);
    policy->begin_round(0);
    const Samples samples = policy->sample(6, rng);
    const Scores scores = policy->score(samples);
    ASSERT_EQ(scores.log_probs.sizes(), samples.log_probs.sizes()) << tiny.name;
    EXPECT_TRUE(torch::allclose(scores.log_probs, samples.log_probs, 1e-4, 1e-5))
        << tiny.name << "\n"
        << scores.log_probs << samples.log_probs;
    EXPECT_TRUE((scores.log_probs <= 1e-6).all().item<bool>()) << tiny.name;
    // A part of the samples scores as it does among all.
    const Scores part = policy->score(samples.slice(2, 3));
    EXPECT_TRUE(torch::allclose(part.log_probs, scores.log_probs.slice(0, 2, 5), 1e-4, 1e-5))
        << tiny.name;
    for (std::int64_t i = 0; i < samples.size(); ++i) {
      const Placement placement = policy->placement(samples, i);
      for (OpId op = 0; op < tiny.problem->num_ops(); ++op) {
        EXPECT_TRUE(tiny.problem->allowed(tiny.problem->group_of(op), placement[op])) << tiny.name;
      }
    }
  }
}

TEST_P(PolicyChecks, finds_decisions_for_a_placement) {
  for (const char* name : {"diamond_on_two_equal", "fork_join_on_four_on_a_bus"}) {
    const TinyCase& tiny = tiny_case(name);
    Rng rng(3);
    const PolicyPtr policy = GetParam().make(*tiny.problem, rng);
    Placement all_on_last(tiny.problem->num_ops(), tiny.problem->num_devices() - 1);
    const Samples samples = policy->actions_for(all_on_last);
    ASSERT_EQ(samples.size(), 1);
    EXPECT_EQ(policy->placement(samples, 0), all_on_last) << name;
    EXPECT_TRUE(std::isfinite(policy->score(samples).log_probs.sum().item<double>())) << name;
  }
}

// Three ops in a row: on one device or two, with a transfer that hurts.
std::shared_ptr<const Problem> three_ops() {
  TimedGraph graph;
  const TensorId a = graph.op("a", 300'000, {}, 200'000'000);
  const TensorId b = graph.op("b", 200'000, {a}, 50'000'000);
  graph.op("c", 400'000, {b});
  return compile(graph.build(), std::make_shared<const Cluster>(Cluster(gpu_cluster(2))));
}

// Of differences of the expected cost, by their step.
constexpr double kRounding = 2e-5;

// Along a random direction in one parameter; at one of two steps, since a kink may be within one.
void expect_slope(Policy& policy, const Enumeration& all, torch::Tensor parameter,
                  const torch::Tensor& gradient, const std::string& name, Rng& rng) {
  const torch::Tensor before = parameter.clone();
  torch::Tensor direction = normals(parameter.sizes().vec(), rng);
  direction /= direction.norm();
  const auto cost_at = [&](double step) {
    parameter.copy_(before + step * direction);
    return all.expected_cost(policy).item<double>();
  };
  const double along = (gradient * direction).sum().item<double>();
  std::string slopes;
  bool found = false;
  for (const double step : {0.01, 0.0025}) {
    const double slope = (cost_at(step) - cost_at(-step)) / (2 * step);
    found |= std::abs(along - slope) <= 0.02 * std::abs(slope) + kRounding;
    slopes += fmt::format(" {}", slope);
  }
  parameter.copy_(before);
  EXPECT_TRUE(found) << name << ": " << along << ", by differences" << slopes;
}

// Of every parameter by itself: what scores leave out of the gradient is missing from every
// learner's steps, and hardly seen along the step itself.
TEST_P(PolicyChecks, gradients_of_scores_are_those_of_finite_differences) {
  if (GetParam().cuts_gradients) return;
  const auto problem = three_ops();
  Rng rng(5);
  const PolicyPtr policy = GetParam().make(*problem, rng);
  disturb(*policy, rng, 0.2);
  policy->begin_round(1'000'000);
  const Enumeration all(*policy, *problem, {.shortage = Shortage::kPenalty},
                        policy->sample(1, rng));
  const std::vector<torch::Tensor> exact = all.gradient(*policy);
  const torch::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const auto& [name, parameter] = policy->parameters().named()[i];
    for (int trial = 0; trial < 3; ++trial) {
      expect_slope(*policy, all, parameter, exact[i], name, rng);
    }
  }
}

// One plain step of the learner from very many samples is the gradient of the expected cost, in
// every parameter.
void expect_gradient(Policy& policy, const Problem& problem, Learner& learner,
                     const CostSettings& cost, double rate) {
  Rng rng(11);
  const Enumeration all(policy, problem, cost, policy.sample(1, rng));
  const std::vector<torch::Tensor> exact = all.gradient(policy);
  const std::vector<torch::Tensor> step =
      step_of(policy, problem, learner, policy.sample(learner.batch(), rng), rate);
  const double length = flat(exact).norm().item<double>();
  EXPECT_GT(length, 1e-4);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double error = (step[i] - exact[i]).norm().item<double>();
    const double own = exact[i].norm().item<double>();
    EXPECT_LT(error, 0.1 * own + 0.02 * length) << policy.parameters().named()[i].first;
  }
}

constexpr std::int64_t kManySamples = 20'000;

TEST_P(PolicyChecks, reinforce_goes_along_the_gradient_of_the_expected_cost) {
  const auto problem = three_ops();
  Rng rng(5);
  const PolicyPtr policy = GetParam().make(*problem, rng);
  disturb(*policy, rng, 0.2);
  policy->begin_round(1'000'000);
  const CostSettings cost{.shortage = Shortage::kPenalty};
  constexpr double kRate = 1;  // so that the step is not lost in rounding
  const LearnerPtr learner = reinforce(
      *problem,
      {.batch = kManySamples, .optimizer = {.adam = false, .learning_rate = kRate}, .cost = cost});
  expect_gradient(*policy, *problem, *learner, cost, kRate);
}

TEST_P(PolicyChecks, first_step_of_ppo_goes_along_the_gradient_of_the_expected_cost) {
  const auto problem = three_ops();
  for (const double clip : {0.0, 0.2}) {
    Rng rng(5);
    const PolicyPtr policy = GetParam().make(*problem, rng);
    disturb(*policy, rng, 0.2);
    policy->begin_round(1'000'000);
    const CostSettings cost{.shortage = Shortage::kPenalty};
    constexpr double kRate = 1;  // so that the step is not lost in rounding
    const LearnerPtr learner = ppo(*problem, {.batch = kManySamples,
                                              .epochs = 1,
                                              .optimizer = {.adam = false, .learning_rate = kRate},
                                              .cost = cost,
                                              .normalize_advantage = false,
                                              .clip = clip});
    expect_gradient(*policy, *problem, *learner, cost, kRate);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PolicyChecks, testing::ValuesIn(policy_cases()),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace emplace::learn
