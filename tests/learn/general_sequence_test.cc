#include <set>

#include <gtest/gtest.h>

#include "learn/encoders/deep_graph_infomax.h"
#include "learn/encoders/gcn.h"
#include "learn/general/agent.h"
#include "learn/general/kinds.h"
#include "learn/general/sequence_policy.h"
#include "learn/nn/gradients.h"
#include "learn/nn/optimizer.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> chain_of(int ops, int devices) {
  TimedGraph graph;
  TensorId last = graph.op("op0", 1, {});
  for (int i = 1; i < ops; ++i) last = graph.op("op" + std::to_string(i), 1 + i % 3, {last});
  return compile_timed(graph.build(), gpu_cluster(devices));
}

// Small, with weights far enough from their start that nothing is symmetric.
GeneralPolicyPtr small_policy(const Problem& problem, double most_bytes_kept = 1e9) {
  Rng rng(7);
  GeneralPolicyPtr policy = general_sequence_policy(group_by_colocation(problem), {.width = 7},
                                                    "cpu", rng, most_bytes_kept);
  const torch::NoGradGuard no_gradients;
  for (torch::Tensor& tensor : policy->parameters().tensors()) {
    tensor.add_(normals(tensor.sizes().vec(), rng), 0.2);
  }
  return policy;
}

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// Three segments.
TEST(GeneralSequencePolicy, scores_as_it_sampled) {
  const auto problem = chain_of(300, 3);
  for (const double kept : {1e9, 0.0}) {
    const GeneralPolicyPtr policy = small_policy(*problem, kept);
    Rng rng(8);
    const Samples samples = policy->sample(5, rng);
    EXPECT_EQ(samples.actions.sizes(), (std::vector<std::int64_t>{5, 300}));
    const Scores scores = policy->score(samples);
    EXPECT_LT(largest_difference(scores.log_probs, samples.log_probs), 1e-4);
    EXPECT_LT(largest_difference(policy->score(samples.slice(3, 2)).log_probs,
                                 samples.log_probs.narrow(0, 3, 2)),
              1e-4);
    const Samples likeliest = policy->likeliest();
    EXPECT_LT(largest_difference(policy->score(likeliest).log_probs, likeliest.log_probs), 1e-4);
  }
}

TEST(GeneralSequencePolicy, gives_the_same_gradient_when_it_computes_segments_again) {
  const auto problem = chain_of(300, 3);
  std::vector<std::vector<torch::Tensor>> gradients;
  GeneralPolicyPtr policy;
  for (const double kept : {1e9, 0.0}) {
    policy = small_policy(*problem, kept);
    Rng rng(9);
    const Scores scores = policy->score(policy->sample(4, rng));
    gradients.push_back(gradient_for(scores.log_probs.square().mean() + scores.entropy,
                                     policy->parameters().tensors()));
  }
  const auto& named = policy->parameters().named();
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::string& name = named[i].first;
    EXPECT_EQ(gradients[0][i].abs().sum().item<double>() > 0, !name.starts_with("discriminator"))
        << name;
    EXPECT_TRUE(torch::allclose(gradients[0][i], gradients[1][i], 1e-3, 1e-5)) << name;
  }
}

TEST(GeneralSequencePolicy, has_the_same_parameters_for_every_graph_and_all_devices) {
  const auto short_chain = chain_of(6, 2);
  const auto long_chain = chain_of(200, 5);
  const GeneralPolicyPtr one = small_policy(*short_chain);
  const GeneralPolicyPtr other = small_policy(*long_chain);
  const auto& a = one->parameters().named();
  const auto& b = other->parameters().named();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(torch::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

TEST(GeneralSequencePolicy, likeliest_decisions_follow_each_other) {
  const auto problem = chain_of(140, 4);
  const GeneralPolicyPtr policy = small_policy(*problem);
  const Samples samples = policy->likeliest();
  EXPECT_TRUE(torch::equal(samples.actions, policy->likeliest().actions));
  const torch::Tensor distributions = policy->score(samples).distributions[0];
  EXPECT_LT(largest_difference(distributions.amax(-1), samples.log_probs), 1e-4);
}

TEST(GeneralSequencePolicy, chooses_devices_in_use) {
  const auto problem = chain_of(150, 5);
  const GeneralPolicyPtr policy = small_policy(*problem);
  const std::vector<DeviceId> used{1, 3};
  Rng rng(10);
  policy->use(policy->views().of(used));
  const Samples samples = policy->sample(20, rng);
  std::set<DeviceId> chosen;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    for (const DeviceId device : policy->placement(samples, i)) chosen.insert(device);
  }
  EXPECT_EQ(chosen, std::set<DeviceId>(used.begin(), used.end()));
  for (const DeviceId device : policy->placement(policy->likeliest(), 0)) {
    EXPECT_TRUE(chosen.contains(device));
  }
}

TEST(GeneralSequencePolicy, sees_the_previous_device_across_segments) {
  const auto problem = chain_of(130, 2);
  const GeneralPolicyPtr policy = small_policy(*problem);
  Samples samples = policy->likeliest();
  const torch::Tensor before = policy->score(samples).distributions[0];
  samples.actions[0][127] = 1 - samples.actions[0][127];
  const torch::Tensor after = policy->score(samples).distributions[0];
  EXPECT_TRUE(torch::equal(before.narrow(1, 0, 128), after.narrow(1, 0, 128)));
  EXPECT_GT(largest_difference(before.narrow(1, 128, 1), after.narrow(1, 128, 1)), 0.1);
}

// The mean over corruptions, by an encoder and a discriminator that have the policy's first
// parameters.
double infomax_loss_of(const GeneralPolicy& policy, const UnitGraph& units) {
  const DeviceViews& views = policy.views();
  const torch::Tensor features = to_tensor(views.unit_features(), torch::kCPU);
  const torch::Tensor graph = to_tensor(views.of(views.fastest(2)).graph, torch::kCPU);
  const torch::Tensor inputs = torch::cat({features, graph.expand({features.size(0), -1})}, 1);
  const Neighbours adjacency = normalized_adjacency(units, torch::kCPU);
  Rng rng(12);
  Parameters parameters;
  const Gcn encoder(parameters, "encoder", inputs.size(1), {.layers = 3, .width = 8}, rng);
  const Discriminator discriminator(parameters, 8, rng);
  std::vector<torch::Tensor> values = policy.parameters().values();
  values.resize(parameters.named().size());
  parameters.assign(values);
  const auto encode = [&](const torch::Tensor& x) { return encoder(adjacency, x); };
  const torch::NoGradGuard no_gradients;
  double sum = 0;
  for (int i = 0; i < 20; ++i) {
    sum += infomax_loss(discriminator, inputs, encode, rng).item<double>();
  }
  return sum / 20;
}

TEST(GeneralSequencePolicy, encoder_learns_without_placements) {
  const auto problem = chain_of(100, 2);
  const GeneralPolicyPtr policy = small_policy(*problem);
  const auto& named = policy->parameters().named();
  const std::vector<torch::Tensor> before = policy->parameters().values();
  Optimizer optimizer({.learning_rate = 1e-2});
  Rng rng(13);
  const UnitGraph units = group_by_colocation(*problem);
  const double first_loss = infomax_loss_of(*policy, units);
  for (int step = 0; step < 60; ++step) {
    optimizer.step(policy->parameters().tensors(), policy->encoder_gradient(rng));
  }
  EXPECT_LT(infomax_loss_of(*policy, units), 0.9 * first_loss);
  for (std::size_t i = 0; i < named.size(); ++i) {
    const bool of_placer = named[i].first.starts_with("placer");
    EXPECT_EQ(torch::equal(before[i], named[i].second), of_placer) << named[i].first;
  }
}

TEST(GeneralSequencePolicy, is_a_kind_of_agent) {
  const auto problem = chain_of(5, 2);
  Rng rng(14);
  const GeneralAgentPtr agent = make_agent("mars", *problem, {.width = 4}, "cpu", rng);
  EXPECT_FALSE(agent->encoder_gradient(rng).empty());
}

}  // namespace
}  // namespace emplace::learn
