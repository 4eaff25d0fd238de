#include <gtest/gtest.h>

#include "learn/policies/policy.h"
#include "learn/policies/segment_attention.h"
#include "learn/units/groupings.h"
#include "support/tiny_graphs.h"

namespace emplace::learn {
namespace {

SegmentAttentionSettings small_attention_policy() {
  return {.sage_width = 4, .sage_layers = 2, .width = 8, .heads = 2, .layers = 2, .segment = 3};
}

TEST(SegmentAttentionPolicy, scores_as_it_sampled) {
  for (const char* name : {"fork_join_on_three_unequal", "one_op_on_two_equal",
                           "pinned_ends_on_four_on_a_bus", "training_step_on_one_device"}) {
    Rng rng(3);
    const Problem& problem = *tiny_case(name).problem;
    const PolicyPtr policy = segment_attention_policy(group_by_colocation(problem),
                                                      small_attention_policy(), "cpu", rng);
    const Samples samples = policy->sample(16, rng);
    const Scores scores = policy->score(samples);
    EXPECT_TRUE(torch::allclose(scores.log_probs, samples.log_probs, 1e-5, 1e-5)) << name;
    EXPECT_TRUE(scores.log_probs.requires_grad());
    EXPECT_EQ(scores.distributions.at(0).size(0), 1);
    for (std::int64_t i = 0; i < samples.size(); ++i) {
      const Placement placement = policy->placement(samples, i);
      const Samples back = policy->actions_for(placement);
      EXPECT_TRUE(torch::equal(back.actions[0], samples.actions[i])) << name;
      EXPECT_TRUE(
          torch::allclose(policy->score(back).log_probs[0], samples.log_probs[i], 1e-5, 1e-5))
          << name;
    }
  }
}

TEST(SegmentAttentionPolicy, begins_as_weights_are_drawn_without_a_spread) {
  SegmentAttentionSettings settings = small_attention_policy();
  settings.spread = 0;
  Rng rng(3);
  const Problem& problem = *tiny_case("fork_join_on_three_unequal").problem;
  const PolicyPtr policy =
      segment_attention_policy(group_by_colocation(problem), settings, "cpu", rng);
  const torch::Tensor distributions =
      policy->score(policy->sample(1, rng)).distributions.at(0).detach().squeeze(0);
  // Neither uniform, nor the same for all units.
  EXPECT_GT(distributions.std(1).max().item<double>(), 0.01);
  EXPECT_GT(distributions.std(0).max().item<double>(), 0.01);
}

TEST(SegmentAttentionPolicy, is_told_features_and_coordinates_as_asked) {
  const Problem& problem = *tiny_case("fork_join_on_three_unequal").problem;
  const auto first_distributions = [&](std::int64_t coordinates, double scale, bool centred) {
    SegmentAttentionSettings settings = small_attention_policy();
    settings.spread = 0;
    settings.coordinates = coordinates;
    settings.feature_scale = scale;
    settings.centred = centred;
    Rng rng(3);
    const PolicyPtr policy =
        segment_attention_policy(group_by_colocation(problem), settings, "cpu", rng);
    return policy->score(policy->sample(1, rng)).distributions.at(0).detach().squeeze(0);
  };
  const auto differ = [](const torch::Tensor& a, const torch::Tensor& b) {
    return (a - b).abs().max().item<double>() > 1e-4;
  };
  for (const std::int64_t coordinates : {0, 4}) {
    EXPECT_TRUE(differ(first_distributions(coordinates, 1, true),
                       first_distributions(coordinates, 0.1, true)));
    EXPECT_TRUE(differ(first_distributions(coordinates, 1, true),
                       first_distributions(coordinates, 1, false)));
  }
  // With neither, units are all the same.
  EXPECT_LT(first_distributions(0, 0, true).std(0).max().item<double>(), 1e-6);
  EXPECT_GT(first_distributions(0, 0.1, true).std(0).max().item<double>(), 1e-4);
}

}  // namespace
}  // namespace emplace::learn
