// Every learner on problems whose best placement is known: what counts is not the best sample,
// which chance would find, but what the policy has come to.
#include <functional>
#include <future>
#include <optional>

#include <gtest/gtest.h>

#include "learn/learners/baseline.h"
#include "learn/learners/cross_entropy.h"
#include "learn/learners/learner.h"
#include "learn/learners/ppo.h"
#include "learn/learners/reinforce.h"
#include "learn/methods/method.h"
#include "learn/policies/policy.h"
#include "learn/policies/table.h"
#include "learn/train/state.h"
#include "learn/train/trainer.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> on_two(TimedGraph& graph, Bytes memory = kUnlimited) {
  return compile(graph.build(), std::make_shared<const Cluster>(Cluster(gpu_cluster(2, memory))));
}

// A chain of 300 us whose every transfer costs 200 us, and a branch of 250 us beside it: the chain
// on one device and the branch on the other take 300 us.
std::shared_ptr<const Problem> branching_chain() {
  TimedGraph graph;
  TensorId last = graph.op("chain0", 100, {}, 200'000);
  last = graph.op("chain1", 100, {last}, 200'000);
  graph.op("chain2", 100, {last});
  graph.op("branch", 250, {});
  return on_two(graph);
}
constexpr Nanoseconds kChainAndBranch = 300'000;

// A chain of four ops that do not fit on one device: cut in the middle, where the tensor is small
// (10 us), it takes 410 us. Every other cut costs 300 us more or does not fit.
std::shared_ptr<const Problem> forced_split() {
  TimedGraph graph;
  std::optional<TensorId> last;
  for (int i = 0; i < 4; ++i) {
    OpSpec spec{.name = "op" + std::to_string(i), .type = "compute"};
    if (last) spec.inputs = {*last};
    spec.persistent_bytes = 1'000'000;
    last = graph.add(spec, 100, i == 1 ? 10'000 : 300'000);
  }
  return on_two(graph, 3'000'000);
}
constexpr Nanoseconds kForcedSplit = 410'000;

struct LearnerCase {
  std::string name;
  std::function<LearnerPtr(const Problem&, const CostSettings&)> make;
};

void PrintTo(const LearnerCase& learner, std::ostream* out) {
  *out << learner.name;
}

// Times here are of a thousandth of a second: the learning rates of plain ascent follow.
OptimizerSettings adam(double rate) {
  return {.learning_rate = rate};
}

std::vector<LearnerCase> learner_cases() {
  return {
      {"reinforce",
       [](const Problem& problem, const CostSettings& cost) {
         return reinforce(problem, {.batch = 16, .optimizer = adam(0.05), .cost = cost});
       }},
      {"ppo_clipped",
       [](const Problem& problem, const CostSettings& cost) {
         return ppo(problem, {.batch = 16, .optimizer = adam(0.1), .cost = cost});
       }},
      {"ppo_with_divergence",
       [](const Problem& problem, const CostSettings& cost) {
         return ppo(problem, {.batch = 16,
                              .epochs = 10,
                              .optimizer = {.adam = false, .learning_rate = 0.3},
                              .cost = cost,
                              .clip = 0});
       }},
      {"cross_entropy",
       [](const Problem& problem, const CostSettings& cost) {
         return cross_entropy(
             problem, {.batch = 16, .refit_after = 160, .uniform_share = 0.01, .cost = cost});
       }},
      {"post",
       [](const Problem& problem, const CostSettings& cost) {
         return ppo_and_cross_entropy(
             problem, {.batch = 16, .refit_after = 160, .uniform_share = 0.01, .cost = cost},
             {.batch = 16,
              .epochs = 10,
              .optimizer = {.adam = false, .learning_rate = 0.3},
              .cost = cost,
              .clip = 0});
       }},
  };
}

class Learners : public testing::TestWithParam<LearnerCase> {
 protected:
  // Of the last rounds' placements.
  struct Ending {
    double mean_seconds = 0;
    double fitting_share = 0;
    double entropy = 0;
    Nanoseconds best = 0;
  };

  Ending learn(const std::shared_ptr<const Problem>& problem, const CostSettings& cost) {
    PlaceContext context(problem);
    Budget budget;
    budget.evaluations = 6400;
    std::vector<TrainingPoint> points;
    context.learning().on_round = [&](const TrainingPoint& point) { points.push_back(point); };
    const MethodPtr method = sample_and_learn(table_policy(group_by_colocation(*problem), "cpu"),
                                              GetParam().make(*problem, cost));
    Environment environment(context, budget, "test");
    train(*method, environment, Rng(4), {.key = "test"});
    EXPECT_EQ(context.evaluations(), 6400);
    Ending ending;
    constexpr std::size_t kLast = 20;
    for (std::size_t i = points.size() - kLast; i < points.size(); ++i) {
      ending.mean_seconds += points[i].mean_seconds / kLast;
      ending.fitting_share += points[i].fitting_share / kLast;
    }
    ending.entropy = points.back().entropy;
    ending.best = points.back().best;
    return ending;
  }
};

TEST_P(Learners, put_a_chain_and_a_branch_side_by_side) {
  const Ending ending = learn(branching_chain(), {.shortage = Shortage::kPenalty});
  EXPECT_EQ(ending.best, kChainAndBranch);
  EXPECT_LT(ending.mean_seconds, 1.15e-9 * kChainAndBranch);
  EXPECT_LT(ending.entropy, 0.35) << "ln 2 is a policy that knows nothing";
}

TEST_P(Learners, split_where_memory_forces_them_to) {
  for (const Shortage shortage : {Shortage::kPenalty, Shortage::kSignal}) {
    const Ending ending = learn(forced_split(), {.shortage = shortage, .failing_seconds = 0.01});
    EXPECT_EQ(ending.best, kForcedSplit);
    EXPECT_GT(ending.fitting_share, 0.85);
    EXPECT_LT(ending.mean_seconds, 1.15e-9 * kForcedSplit);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Learners, testing::ValuesIn(learner_cases()),
                         [](const auto& made) { return made.param.name; });

TEST(MovingBaseline, forgets_or_is_the_mean_of_all) {
  MovingBaseline moving(0.5);
  MovingBaseline mean(1);
  for (const double cost : {4.0, 2.0, 9.0}) {
    moving.update(cost);
    mean.update(cost);
  }
  EXPECT_DOUBLE_EQ(moving.value(0), 6);
  EXPECT_DOUBLE_EQ(mean.value(0), 5);
  StateWriter writer;
  mean.save(writer);
  const std::string bytes = writer.bytes();
  MovingBaseline resumed(1);
  resumed.load(StateReader(bytes, "state"));
  resumed.update(1);
  EXPECT_DOUBLE_EQ(resumed.value(0), 4);
}

// Post, a batch at a time, whose samples all cost the same.
class PostByHand {
 public:
  PostByHand(std::int64_t batch, std::int64_t refit_after, bool told) {
    const CostSettings cost{.scale = CostScale::kSeconds};
    learner_ = ppo_and_cross_entropy(
        *problem_,
        {.batch = batch, .refit_after = refit_after, .cost = cost, .tells_baseline = told},
        {.batch = batch, .cost = cost, .baseline_decay = 1});
  }
  // How many samples it asked for.
  std::int64_t update(Nanoseconds step) {
    const std::int64_t count = learner_->batch();
    std::promise<std::vector<SampleOutcome>> outcomes;
    outcomes.set_value(std::vector<SampleOutcome>(static_cast<std::size_t>(count), {.step = step}));
    PendingOutcomes pending(outcomes.get_future());
    learner_->update(*policy_, policy_->sample(count, rng_), pending, 1);
    return count;
  }
  std::string saved() const {
    StateWriter writer;
    learner_->save(writer);
    return writer.bytes();
  }
  void load(const std::string& saved) { learner_->load(StateReader(saved, "state"), *policy_); }

 private:
  std::shared_ptr<const Problem> problem_ = branching_chain();
  PolicyPtr policy_ = table_policy(group_by_colocation(*problem_), "cpu");
  LearnerPtr learner_;
  Rng rng_{2};
};

constexpr Nanoseconds kSecond = 1'000'000'000;

// Two batches, the second of which is for a refit after so many samples.
double baseline_after_refit(std::int64_t refit_after, bool told) {
  PostByHand post(2, refit_after, told);
  post.update(kSecond);
  post.update(4 * kSecond);
  const std::string bytes = post.saved();
  return StateReader(bytes, "state").reals("baseline")[0];
}

TEST(Post, tells_ppo_of_the_costs_of_refits_where_asked) {
  EXPECT_DOUBLE_EQ(baseline_after_refit(4, false), 1);
  EXPECT_DOUBLE_EQ(baseline_after_refit(4, true), 2.5);
  // Of three placements the third was for the refit: the mean is of placements.
  EXPECT_DOUBLE_EQ(baseline_after_refit(3, true), 2);
}

TEST(Post, refits_after_as_many_samples_as_were_asked_for) {
  PostByHand post(4, 10, false);
  const auto seen = [&] {
    const std::string bytes = post.saved();
    return StateReader(bytes, "state").reals("seen_costs").size();
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(post.update(kSecond), 4);
    EXPECT_EQ(post.update(kSecond), 4);
    EXPECT_EQ(seen(), 8U);
    // Goes on from there with what is missing.
    PostByHand resumed(4, 10, false);
    resumed.load(post.saved());
    EXPECT_EQ(resumed.update(kSecond), 2);
    EXPECT_EQ(post.update(kSecond), 2);
    EXPECT_EQ(seen(), 0U);
  }
}

}  // namespace
}  // namespace emplace::learn
