#include "learn/general/leanings.h"

#include <gtest/gtest.h>

#include "learn/general/attention_policy.h"
#include "learn/general/sequence_policy.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> long_chain(int devices) {
  TimedGraph graph;
  TensorId last = graph.op("op0", 1, {});
  for (int i = 1; i < 200; ++i) last = graph.op("op" + std::to_string(i), 1 + i % 3, {last});
  return compile_timed(graph.build(), gpu_cluster(devices));
}

TEST(Leanings, are_none_at_first_and_then_ever_more) {
  Rng rng(1);
  const torch::Tensor all = leanings(1000, 3, rng).abs();
  EXPECT_EQ(all[0].max().item<float>(), 0);
  EXPECT_LT(all.narrow(0, 1, 99).max().item<float>(), 0.5);
  EXPECT_GT(all.narrow(0, 900, 100).max().item<float>(), 3);
}

class LeaningPolicy : public ::testing::TestWithParam<bool> {
 protected:
  GeneralPolicyPtr policy_on(const Problem& problem) const {
    Rng rng(2);
    return GetParam()
               ? general_attention_policy(group_by_colocation(problem), {.width = 8}, "cpu", rng)
               : general_sequence_policy(group_by_colocation(problem), {.width = 8}, "cpu", rng);
  }
};

TEST_P(LeaningPolicy, gives_more_to_the_device_that_it_leans_to) {
  const auto problem = long_chain(3);
  const GeneralPolicyPtr policy = policy_on(*problem);
  const torch::Tensor given = torch::tensor({{0.F, 0.F, 0.F}, {0.F, 1.F, 0.F}, {0.F, 0.F, 50.F}});
  const Samples samples = policy->likeliest(given);
  ASSERT_EQ(samples.size(), 3);
  const auto count = [&](std::int64_t sample, DeviceId device) {
    const Placement placement = policy->placement(samples, sample);
    return std::count(placement.begin(), placement.end(), device);
  };
  EXPECT_EQ(policy->placement(samples, 0), policy->placement(policy->likeliest(), 0));
  EXPECT_GT(count(1, 1), count(0, 1));
  EXPECT_GT(count(1, 0), 0);
  EXPECT_EQ(count(2, 2), 200);
}

TEST_P(LeaningPolicy, decides_about_each_leaning_by_itself) {
  const auto problem = long_chain(4);
  const GeneralPolicyPtr policy = policy_on(*problem);
  Rng rng(3);
  const torch::Tensor all = leanings(6, 4, rng);
  const Samples together = policy->likeliest(all);
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(policy->placement(together, i),
              policy->placement(policy->likeliest(all.narrow(0, i, 1)), 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, LeaningPolicy, ::testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "attention" : "sequence";
});

TEST(FirstAndBest, are_one_where_they_are_the_same) {
  const std::vector<Placement> placements{{0}, {1}, {2}};
  const SampleOutcome slow{.step = 20}, fast{.step = 10}, large{.step = 1, .overflow = 5};
  EXPECT_EQ(first_and_best(placements, {slow, large, fast}), (std::vector<Placement>{{0}, {2}}));
  EXPECT_EQ(first_and_best(placements, {fast, large, slow}), (std::vector<Placement>{{0}}));
}

}  // namespace
}  // namespace emplace::learn
