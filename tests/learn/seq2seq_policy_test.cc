#include <gtest/gtest.h>

#include "learn/learners/learner.h"
#include "learn/policies/policy.h"
#include "learn/policies/seq2seq.h"
#include "learn/units/groupings.h"
#include "support/tiny_graphs.h"

namespace emplace::learn {
namespace {

PolicyPtr small_sequence_policy(const Problem& problem, Rng& rng) {
  return sequence_policy(group_by_colocation(problem), {.width = 8, .decoder_sees_unit = true},
                         "cpu", rng);
}

Gradient gradient_with(Policy& policy, const Samples& samples, int threads) {
  return gradient_of(policy, samples, threads, [](const Scores& scores, const Shard&) {
    return scores.log_probs.sum() + scores.entropy;
  });
}

TEST(SequencePolicy, gradients_do_not_depend_on_threads) {
  const TinyCase& tiny = tiny_case("fork_join_on_four_on_a_bus");
  Rng rng(3);
  const PolicyPtr policy = small_sequence_policy(*tiny.problem, rng);
  const Samples samples = policy->sample(7, rng);
  ASSERT_GT(policy->shards(), 1);
  const Gradient alone = gradient_with(*policy, samples, 1);
  const Gradient together = gradient_with(*policy, samples, 4);
  for (std::size_t i = 0; i < alone.by_parameter.size(); ++i) {
    EXPECT_TRUE(torch::equal(alone.by_parameter[i], together.by_parameter[i]));
  }
}

TEST(SequencePolicy, begins_anew_as_a_new_one_would) {
  const TinyCase& tiny = tiny_case("diamond_on_two_equal");
  Rng rng(3);
  const PolicyPtr policy = small_sequence_policy(*tiny.problem, rng);
  Rng again(8);
  ASSERT_TRUE(policy->restart(again));
  Rng other(8);
  const PolicyPtr fresh = small_sequence_policy(*tiny.problem, other);
  Rng first(5);
  Rng second(5);
  const Samples a = policy->sample(20, first);
  const Samples b = fresh->sample(20, second);
  EXPECT_TRUE(torch::equal(a.actions, b.actions));
  EXPECT_TRUE(torch::equal(a.log_probs, b.log_probs));
  // The parameters are the ones that an optimizer has been given.
  EXPECT_TRUE(policy->score(a).log_probs.requires_grad());
}

}  // namespace
}  // namespace emplace::learn
