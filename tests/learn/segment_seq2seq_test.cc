#include "learn/policies/segment_seq2seq.h"

#include <cmath>

#include <gtest/gtest.h>

#include "learn/policies/policy.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> segment_chain(int ops, int devices = 2) {
  TimedGraph graph;
  TensorId last = graph.op("op0", 1, {});
  for (int i = 1; i < ops; ++i) last = graph.op("op" + std::to_string(i), 1 + i % 3, {last});
  return compile_timed(graph.build(), gpu_cluster(devices));
}

// Small, in segments of three units, with weights large enough to matter.
PolicyPtr small_segment_policy(const Problem& problem, double most_bytes_kept = 1e9,
                               std::int64_t pretraining = 0) {
  Rng rng(7);
  PolicyPtr policy = segment_sequence_policy(group_by_colocation(problem),
                                             {.encoder_layers = 2,
                                              .encoder_width = 6,
                                              .width = 8,
                                              .segment = 3,
                                              .pretraining = pretraining,
                                              .most_bytes_kept = most_bytes_kept},
                                             "cpu", rng);
  const torch::NoGradGuard no_gradients;
  for (torch::Tensor& tensor : policy->parameters().tensors()) tensor.mul_(2);
  return policy;
}

double segment_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(SegmentSequencePolicy, scores_as_it_sampled_across_segments) {
  const auto problem = segment_chain(11, 3);
  for (const double kept : {1e9, 0.0}) {
    const PolicyPtr policy = small_segment_policy(*problem, kept);
    Rng rng(8);
    const Samples samples = policy->sample(5, rng);
    EXPECT_EQ(samples.actions.sizes(), (std::vector<std::int64_t>{5, 11}));
    const Scores scores = policy->score(samples);
    EXPECT_LT(segment_difference(scores.log_probs, samples.log_probs), 1e-5);
    EXPECT_GT(scores.entropy.item<double>(), 0);
    EXPECT_LT(segment_difference(policy->score(samples.slice(3, 2)).log_probs,
                                 samples.log_probs.narrow(0, 3, 2)),
              1e-5);
  }
}

TEST(SegmentSequencePolicy, gives_the_same_gradient_when_it_computes_segments_again) {
  const auto problem = segment_chain(11, 3);
  std::vector<std::vector<torch::Tensor>> gradients;
  for (const double kept : {1e9, 0.0}) {
    const PolicyPtr policy = small_segment_policy(*problem, kept);
    Rng rng(9);
    const Scores scores = policy->score(policy->sample(4, rng));
    const torch::Tensor loss = scores.log_probs.square().sum() + scores.entropy;
    gradients.push_back(torch::autograd::grad({loss}, policy->parameters().tensors()));
  }
  for (std::size_t i = 0; i < gradients[0].size(); ++i) {
    EXPECT_GT(gradients[0][i].abs().sum().item<double>(), 0) << i;
    EXPECT_TRUE(torch::allclose(gradients[0][i], gradients[1][i], 1e-4, 1e-5)) << i;
  }
}

TEST(SegmentSequencePolicy, hands_its_state_to_the_next_segment) {
  const auto problem = segment_chain(9);
  const PolicyPtr policy = small_segment_policy(*problem);
  Rng rng(10);
  Samples samples = policy->sample(1, rng);
  const torch::Tensor before = policy->score(samples).distributions[0];
  samples.actions[0][1] = 1 - samples.actions[0][1];
  const torch::Tensor after = policy->score(samples).distributions[0];
  EXPECT_LT(segment_difference(before.narrow(1, 0, 2), after.narrow(1, 0, 2)), 1e-6);
  EXPECT_GT(segment_difference(before.narrow(1, 6, 3), after.narrow(1, 6, 3)), 1e-6);
}

// Every placement of five units on two devices, as samples.
Samples every_sample(std::int64_t units) {
  const std::int64_t count = std::int64_t{1} << units;
  torch::Tensor actions = torch::empty({count, units}, torch::kInt64);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t unit = 0; unit < units; ++unit) actions[i][unit] = (i >> unit) & 1;
  }
  return {.actions = actions, .log_probs = {}};
}

TEST(SegmentSequencePolicy, has_the_gradient_of_the_expected_reward) {
  const auto problem = segment_chain(5);
  const PolicyPtr policy = small_segment_policy(*problem, 0);
  const Samples all = every_sample(5);
  Rng rng(11);
  const torch::Tensor rewards = normals({all.size()}, rng);
  const auto expected = [&] {
    const torch::Tensor probabilities = policy->score(all).log_probs.sum(1).exp();
    EXPECT_NEAR(probabilities.sum().item<double>(), 1, 1e-5);
    return (probabilities * rewards).sum();
  };
  const std::vector<torch::Tensor> parameters = policy->parameters().tensors();
  const std::vector<torch::Tensor> gradients = torch::autograd::grad({expected()}, parameters);
  const double step = 1e-2;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::NoGradGuard no_gradients;
    torch::Tensor value = parameters[i].reshape({-1})[0];
    value += step;
    const double above = expected().item<double>();
    value -= 2 * step;
    const double below = expected().item<double>();
    value += step;
    const double finite = (above - below) / (2 * step);
    EXPECT_NEAR(gradients[i].reshape({-1})[0].item<double>(), finite,
                2e-4 + 5e-3 * std::abs(finite))
        << policy->parameters().named()[i].first;
  }
}

TEST(SegmentSequencePolicy, places_where_it_may_and_finds_its_way_back) {
  for (const TinyCase& tiny : tiny_cases()) {
    SCOPED_TRACE(tiny.name);
    const PolicyPtr policy = small_segment_policy(*tiny.problem);
    Rng rng(12);
    const Samples samples = policy->sample(2, rng);
    const Placement placement = policy->placement(samples, 1);
    const Samples again = policy->actions_for(placement);
    EXPECT_TRUE(torch::equal(again.actions[0], samples.actions[1]));
    EXPECT_LT(segment_difference(policy->score(again).log_probs[0], samples.log_probs[1]), 1e-5);
    for (OpId op = 0; op < tiny.problem->num_ops(); ++op) {
      EXPECT_TRUE(tiny.problem->allowed(tiny.problem->group_of(op), placement[op]));
    }
  }
}

TEST(SegmentSequencePolicy, pre_trains_its_encoder_alone) {
  const auto problem = segment_chain(20);
  for (const std::int64_t iterations : {0, 5}) {
    const PolicyPtr policy = small_segment_policy(*problem, 1e9, iterations);
    std::vector<torch::Tensor> before;
    for (const torch::Tensor& tensor : policy->parameters().tensors()) {
      before.push_back(tensor.detach().clone());
    }
    Rng rng(13);
    policy->prepare(Budget{}, rng);
    const auto& named = policy->parameters().named();
    for (std::size_t i = 0; i < named.size(); ++i) {
      const bool learns = iterations > 0 && named[i].first.starts_with("encoder");
      EXPECT_EQ(torch::equal(before[i], named[i].second), !learns) << named[i].first;
    }
  }
}

}  // namespace
}  // namespace emplace::learn
