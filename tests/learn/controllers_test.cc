// Controllers and their parameter server: what they learn under a budget of evaluations depends on
// the seed and their number alone, and one controller is the ordinary run.
#include "learn/controllers/controllers.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/local_transport.h"
#include "learn/controllers/shards.h"
#include "learn/controllers/teams.h"
#include "learn/make_method.h"
#include "learn/nn/single_thread.h"
#include "learn/train/trainer.h"
#include "support/error_text.h"
#include "support/random_problem.h"

namespace emplace::learn {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::shared_ptr<const Problem> some_problem() {
  Rng rng(5);
  for (;;) {
    auto problem = random_problem(rng, {.max_ops = 60, .max_devices = 4, .roomy = true});
    if (problem->num_groups() > 20 && problem->num_devices() > 2) return problem;
  }
}

SamplingSystem small_system(std::int64_t controllers, double restart_entropy = 0) {
  return {.policy = SequencePolicySettings{.width = 8},
          .learner = ReinforceSettings{.batch = 5,
                                       .optimizer = {.learning_rate = 0.02, .clip_norm = 1},
                                       .cost = {.shortage = Shortage::kPenalty}},
          .rounds = {.restart_entropy = restart_entropy},
          .controllers = controllers};
}

struct Learned {
  Placement placement;
  Evaluation value;
  std::int64_t evaluations = 0;
  std::vector<TrainingPoint> points;
};

Budget evaluations(std::int64_t number, int threads = 1) {
  Budget budget;
  budget.evaluations = number;
  budget.threads = threads;
  return budget;
}

// Where a run keeps what it could be resumed from, and what it goes on from.
struct Checkpoints {
  std::string resume = {};
  double seconds = 1000;
  std::vector<std::string> saved = {};
};

Learned learn(const SamplingSystem& system, const Budget& budget, bool ordinary,
              Checkpoints* checkpoints = nullptr, std::uint64_t seed = 8, Nanoseconds bound = 0) {
  const SingleThread single_thread;
  PlaceContext context(some_problem());
  context.incumbent().raise({bound, "told"});
  Learned learned;
  if (checkpoints != nullptr) {
    context.learning().resume = checkpoints->resume;
    context.learning().resume_name = "state";
    context.learning().save_seconds = checkpoints->seconds;
    context.learning().save = [=](std::string_view bytes) {
      checkpoints->saved.emplace_back(bytes);
    };
  }
  context.learning().on_round = [&](const TrainingPoint& point) {
    learned.points.push_back(point);
  };
  Environment environment(context, budget, "test");
  const Rng weights(7);
  const LearningRun run{.key = "test"};
  if (ordinary) {
    Rng own = weights;
    train(*make_method(system, context.problem(), "cpu", own), environment, Rng(seed), run);
  } else {
    train_with_controllers(system, environment, weights, Rng(seed), run);
  }
  const auto best = context.incumbent().best();
  learned.placement = best->placement;
  learned.value = best->value;
  learned.evaluations = context.evaluations();
  return learned;
}

void expect_same(const Learned& a, const Learned& b) {
  EXPECT_EQ(a.placement, b.placement);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.evaluations, b.evaluations);
  ASSERT_EQ(a.points.size(), b.points.size());
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    EXPECT_EQ(a.points[i].round, b.points[i].round) << i;
    EXPECT_EQ(a.points[i].evaluations, b.points[i].evaluations) << i;
    EXPECT_EQ(a.points[i].mean_cost, b.points[i].mean_cost) << i;
    EXPECT_EQ(a.points[i].baseline, b.points[i].baseline) << i;
    EXPECT_EQ(a.points[i].entropy, b.points[i].entropy) << i;
    EXPECT_EQ(a.points[i].gradient_norm, b.points[i].gradient_norm) << i;
    EXPECT_EQ(a.points[i].simulated_seconds, b.points[i].simulated_seconds) << i;
    EXPECT_EQ(a.points[i].best, b.points[i].best) << i;
  }
}

TEST(Controllers, OneIsTheOrdinaryRun) {
  // The last round is not a whole one. With restarts, the policy begins anew after some rounds.
  std::vector<double> last_entropies;
  for (const double restart_entropy : {0.0, 0.9}) {
    const SamplingSystem system = small_system(1, restart_entropy);
    const Learned ordinary = learn(system, evaluations(123), true);
    expect_same(learn(system, evaluations(123), false), ordinary);
    ASSERT_EQ(ordinary.points.size(), 25U);
    last_entropies.push_back(ordinary.points[23].entropy);  // of the last whole round
  }
  EXPECT_NE(last_entropies[0], last_entropies[1]) << "it never began anew";
}

TEST(Controllers, DependOnTheSeedAndTheirNumberAlone) {
  for (const double restart_entropy : {0.0, 0.9}) {
    const SamplingSystem system = small_system(3, restart_entropy);
    const Learned one = learn(system, evaluations(123, 1), false);
    EXPECT_EQ(one.evaluations, 123);
    for (const int threads : {2, 4}) {
      expect_same(learn(system, evaluations(123, threads), false), one);
    }
  }
}

TEST(Controllers, GradientsAreStale) {
  // A table's entropy depends on its parameters alone.
  SamplingSystem system = small_system(4);
  system.policy = TableSettings{};
  const Learned learned = learn(system, evaluations(40), false);
  ASSERT_EQ(learned.points.size(), 8U);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(learned.points[i].entropy, learned.points[0].entropy) << i;
  }
  for (std::size_t i = 4; i < 8; ++i) {
    EXPECT_NE(learned.points[i].entropy, learned.points[i - 1].entropy) << i;
  }
}

TEST(Controllers, UnderTimeGradientsComeAsTheyMay) {
  for (const int threads : {1, 3}) {
    Budget budget;
    budget.seconds = 2;
    budget.threads = threads;
    const Learned learned = learn(small_system(3), budget, false);
    EXPECT_GT(learned.points.size(), 5U);
    EXPECT_EQ(learned.points.back().evaluations, learned.evaluations);
    EXPECT_LE(learned.value.step, learned.points.front().best);
  }
}

// The rounds of `whole` that the checkpoint does not have.
void expect_the_rest(const Learned& resumed, const Learned& whole) {
  EXPECT_EQ(resumed.value, whole.value);
  EXPECT_EQ(resumed.evaluations, whole.evaluations);
  ASSERT_LE(resumed.points.size(), whole.points.size());
  const std::size_t before = whole.points.size() - resumed.points.size();
  for (std::size_t i = 0; i < resumed.points.size(); ++i) {
    const TrainingPoint& expected = whole.points[before + i];
    EXPECT_EQ(resumed.points[i].round, expected.round) << i;
    EXPECT_EQ(resumed.points[i].evaluations, expected.evaluations) << i;
    EXPECT_EQ(resumed.points[i].mean_cost, expected.mean_cost) << i;
    EXPECT_EQ(resumed.points[i].baseline, expected.baseline) << i;
    EXPECT_EQ(resumed.points[i].entropy, expected.entropy) << i;
    EXPECT_EQ(resumed.points[i].gradient_norm, expected.gradient_norm) << i;
    EXPECT_EQ(resumed.points[i].simulated_seconds, expected.simulated_seconds) << i;
  }
}

TEST(Controllers, GoOnFromACheckpointAsIfNothingHadHappened) {
  for (const double restart_entropy : {0.0, 0.9}) {
    const SamplingSystem system = small_system(3, restart_entropy);
    const Learned whole = learn(system, evaluations(123), false);
    // Before every controller has had a turn, between rounds, and in the middle of one, whose
    // samples do not count then.
    for (const std::int64_t first : {5, 10, 60, 87}) {
      Checkpoints checkpoints;
      learn(system, evaluations(first, 2), false, &checkpoints);
      ASSERT_EQ(checkpoints.saved.size(), 1U);
      Checkpoints resumed{.resume = checkpoints.saved.back()};
      const Learned rest = learn(system, evaluations(123, 3), false, &resumed);
      expect_the_rest(rest, whole);
      EXPECT_EQ(rest.points.size(), 25U - static_cast<std::size_t>(first) / 5);
    }
  }
}

// Who goes on from there begins no further rounds.
TEST(Controllers, WhatWasProvenStaysProven) {
  for (const std::int64_t controllers : {1, 4}) {
    const SamplingSystem system = small_system(controllers);
    const Nanoseconds best = learn(system, evaluations(200), false).value.step;
    Checkpoints checkpoints;
    const Learned proven = learn(system, evaluations(3'000), false, &checkpoints, 8, best);
    EXPECT_LT(proven.evaluations, 300);
    for (int i = 0; i < 2; ++i) {
      checkpoints.resume = checkpoints.saved.back();
      const Learned again = learn(system, evaluations(3'000), false, &checkpoints, 8, best);
      EXPECT_EQ(again.evaluations, proven.evaluations);
      EXPECT_EQ(again.placement, proven.placement);
    }
  }
}

// As where rank 0 is killed while others are in the middle of their rounds.
TEST(Controllers, GoOnFromAnyMoment) {
  const SamplingSystem system = small_system(3);
  Checkpoints often{.seconds = 0.002};
  const Learned whole = learn(system, evaluations(123, 3), false, &often);
  ASSERT_GT(often.saved.size(), 2U);
  for (std::size_t i = 0; i < often.saved.size(); i += often.saved.size() / 3) {
    Checkpoints resumed{.resume = often.saved[i]};
    expect_the_rest(learn(system, evaluations(123, 2), false, &resumed), whole);
  }
}

TEST(Controllers, GoOnUnderTime) {
  SamplingSystem system = small_system(3);
  system.policy = TableSettings{};
  Budget budget;
  budget.seconds = 1;
  budget.threads = 3;
  Checkpoints first;
  const Learned before = learn(system, budget, false, &first);
  ASSERT_FALSE(first.saved.empty());
  Checkpoints second{.resume = first.saved.back()};
  const Learned after = learn(system, budget.restarted(), false, &second);
  ASSERT_FALSE(after.points.empty());
  EXPECT_GT(after.points.front().round, before.points.size() / 2);
  EXPECT_GT(after.points.front().evaluations, before.evaluations);
  EXPECT_GE(after.points.front().seconds, 1);
  // What was learned is still there, in other shards.
  EXPECT_LT(after.points.front().entropy,
            0.5 * (before.points.front().entropy + before.points.back().entropy));
  // And by one thread, or under a budget of evaluations.
  budget.threads = 1;
  for (const bool counted : {false, true}) {
    Budget other = budget.restarted();
    if (counted) other = evaluations(before.evaluations + 30);
    const Learned alone = learn(system, other, false, &second);
    ASSERT_FALSE(alone.points.empty());
    EXPECT_LT(alone.points.front().entropy,
              0.5 * (before.points.front().entropy + before.points.back().entropy));
  }
}

TEST(Controllers, GoOnFromTheirOwnCheckpointsAlone) {
  Checkpoints checkpoints;
  learn(small_system(3), evaluations(30), false, &checkpoints);
  Checkpoints resumed{.resume = checkpoints.saved.back()};
  EXPECT_THAT(error_text([&] { learn(small_system(2), evaluations(60), false, &resumed); }),
              HasSubstr("state: a checkpoint of 3 controllers; expected 2"));
  EXPECT_THAT(error_text([&] { learn(small_system(3), evaluations(60), false, &resumed, 9); }),
              HasSubstr("another seed"));
}

TEST(Controllers, NeedALearnerWhoseGradientsAreApart) {
  SamplingSystem system = small_system(2);
  system.learner = PpoSettings{};
  EXPECT_THAT(error_text([&] { learn(system, evaluations(20), false); }),
              HasSubstr("learner=reinforce"));
}

TEST(Teams, AreEvenAndNoMoreThanControllers) {
  const auto all = [](int) { return true; };
  const auto sizes = [&](const Teams& teams, int ranks) {
    std::vector<std::size_t> found;
    for (int rank = 0; rank < ranks; ++rank) {
      if (teams.is_controller(rank, all)) found.push_back(1 + teams.workers_of(rank, all).size());
    }
    EXPECT_EQ(found.size(), static_cast<std::size_t>(teams.count()));
    return found;
  };
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sizes(Teams(3, 20, 0), 3), (Sizes{1, 1, 1}));
  EXPECT_EQ(sizes(Teams(3, 1, 0), 3), (Sizes{1, 1, 1}));
  EXPECT_EQ(sizes(Teams(8, 2, 3), 8), (Sizes{4, 4}));
  EXPECT_EQ(sizes(Teams(8, 20, 3), 8), (Sizes{4, 4}));
  EXPECT_EQ(sizes(Teams(6, 20, 3), 6), (Sizes{3, 3}));
  EXPECT_EQ(sizes(Teams(7, 2, 1), 7), (Sizes{4, 3}));
  EXPECT_EQ(sizes(Teams(1, 2, 3), 1), (Sizes{1}));
  EXPECT_EQ(sizes(Teams(5, 1, 1000), 5), (Sizes{5}));
}

TEST(Teams, GoOnWithoutTheirController) {
  const Teams teams(8, 2, 3);
  const auto present = [](int rank) { return rank != 4 && rank != 6; };
  EXPECT_TRUE(teams.is_controller(5, present));
  EXPECT_FALSE(teams.is_controller(7, present));
  EXPECT_EQ(teams.workers_of(5, present), (std::vector<std::int32_t>{7}));
}

// Three ranks with a server.
class Shards : public ::testing::Test {
 protected:
  explicit Shards(double lost_after = 30)
      : options_{.pulse_seconds = 0.02, .lost_after = lost_after},
        crew_(ranks_.take(0), options_),
        one_(ranks_.take(1), options_, [] {}),
        two_(ranks_.take(2), options_, [] {}) {
    Rng rng(3);
    for (Parameters* parameters : {&policy_, &fetched_, &alone_}) {
      Rng own(9);
      parameters->uniform("a", {4, 3}, 1, own);
      parameters->uniform("part.b", {5}, 1, own);
      parameters->uniform("c", {2, 2}, 1, own);
      parameters->uniform("d", {1}, 1, own);
    }
    threads_.emplace_back([this] { one_.wait(); });
    threads_.emplace_back([this] { two_.wait(); });
  }
  ~Shards() override {
    crew_.dismiss();
    for (std::thread& thread : threads_) thread.join();
  }

  static std::vector<torch::Tensor> gradients(const Parameters& parameters, double scale) {
    std::vector<torch::Tensor> all;
    for (const torch::Tensor& tensor : parameters.tensors()) {
      all.push_back(torch::full_like(tensor, scale).detach());
    }
    return all;
  }

  void expect_equal(const Parameters& a, const Parameters& b) {
    for (std::size_t i = 0; i < a.tensors().size(); ++i) {
      EXPECT_TRUE(torch::equal(a.tensors()[i], b.tensors()[i])) << a.named()[i].first;
    }
  }

  // Until the table says so.
  static void wait_for_owners(const ParameterShards& shards,
                              const std::vector<std::int32_t>& owners) {
    for (int i = 0; i < 500 && shards.owners() != owners; ++i) {
      std::this_thread::sleep_for(milliseconds(5));
    }
    EXPECT_EQ(shards.owners(), owners);
  }

  const dist::PostOptions options_;
  static constexpr std::uint64_t kRun = 4;
  const OptimizerSettings steps_{
      .learning_rate = 0.1, .clip_norm = 1, .part = {.prefix = "part.", .learning_rate = 0.3}};
  const SingleThread single_thread_;
  dist::LocalRanks ranks_{3};
  dist::Crew crew_;
  dist::Member one_;
  dist::Member two_;
  std::vector<std::thread> threads_;
  Parameters policy_, fetched_, alone_;
};

TEST_F(Shards, StepAsOneOptimizerDoes) {
  ParameterShards first(crew_, kRun, 3, policy_, steps_);
  ParameterShards second(one_, kRun, 3, policy_, steps_);
  ParameterShards third(two_, kRun, 3, policy_, steps_);
  first.begin(policy_, 1, Optimizer(steps_));
  first.hand_over(1, 1);
  first.hand_over(2, 2);
  wait_for_owners(first, {0, 1, 2});
  second.set_owners(first.owners());
  third.set_owners(first.owners());
  Optimizer optimizer(steps_);
  for (int round = 1; round <= 4; ++round) {
    for (ParameterShards* shards : {&first, &second, &third}) {
      const auto epochs = shards->fetch(fetched_, [] {});
      expect_equal(fetched_, alone_);
      std::vector<torch::Tensor> found = gradients(fetched_, round);
      Optimizer::clip(steps_, fetched_, found);
      shards->push(epochs, found);
      // From the same rank, so after what was pushed.
      shards->fetch(fetched_, [] {});
      optimizer.step(alone_, gradients(alone_, round));
      expect_equal(fetched_, alone_);
    }
  }
  EXPECT_EQ(first.steps_taken() + second.steps_taken() + third.steps_taken(), 3 * 12);
  // Gradients of an earlier epoch are of no use.
  const auto epochs = second.fetch(fetched_, [] {});
  first.begin(policy_, 2, Optimizer(steps_));
  second.push(epochs, gradients(fetched_, 1));
  for (int i = 0; i < 500; ++i) {
    if (second.fetch(fetched_, [] {}) == std::vector<std::uint64_t>{2, 2, 2}) break;
  }
  second.push(epochs, gradients(fetched_, 1));
  second.fetch(fetched_, [] {});
  expect_equal(fetched_, policy_);
}

// What is saved is what one optimizer would have, and others can begin with it.
TEST_F(Shards, AreSavedAsOneAndBegunWithIt) {
  std::string bytes;
  {
    ParameterShards first(crew_, kRun, 3, policy_, steps_);
    first.begin(policy_, 1, Optimizer(steps_));
    const auto epochs = first.fetch(fetched_, [] {});
    for (int i = 0; i < 3; ++i) first.push(epochs, gradients(fetched_, 0.01 * (i + 1)));
    StateWriter state;
    EXPECT_EQ(first.save(state), 1U);
    bytes = state.bytes();
    first.fetch(policy_, [] {});
  }
  const StateReader saved(bytes, "state");
  for (const auto& [name, tensor] : alone_.named()) saved.load("policy." + name, tensor);
  expect_equal(alone_, policy_);
  Optimizer optimizer(steps_);
  optimizer.load(saved, "optimizer", torch::kCPU);
  ParameterShards again(crew_, kRun + 1, 3, policy_, steps_);
  again.begin(alone_, 2, optimizer);
  optimizer.step(alone_, gradients(alone_, 0.02));
  const auto epochs = again.fetch(fetched_, [] {});
  again.push(epochs, gradients(fetched_, 0.02));
  again.fetch(fetched_, [] {});
  expect_equal(fetched_, alone_);
}

TEST_F(Shards, GoOnWithoutALostOwner) {
  ParameterShards first(crew_, kRun, 3, policy_, steps_);
  ParameterShards second(one_, kRun, 3, policy_, steps_);
  ParameterShards third(two_, kRun, 3, policy_, steps_);
  first.begin(policy_, 1, Optimizer(steps_));
  first.hand_over(1, 1);
  wait_for_owners(first, {0, 1, 0});
  ranks_.silence(1);
  std::atomic<bool> fetched{false};
  std::thread fetching([&] {
    third.set_owners({0, 1, 0});
    third.fetch(fetched_, [] {});
    fetched = true;
  });
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_FALSE(fetched);
  EXPECT_TRUE(first.take_back(1));
  EXPECT_FALSE(first.take_back(2));
  third.set_owners(first.owners());
  fetching.join();
  expect_equal(fetched_, policy_);
  first.hand_over(1, 1);  // it is lost
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(first.owners(), (std::vector<std::int32_t>{0, 0, 0}));
  ranks_.silence(1, false);
}

TEST_F(Shards, WhatALostOwnerToldOfIsKept) {
  ParameterShards first(crew_, kRun, 3, policy_, steps_);
  ParameterShards second(one_, kRun, 3, policy_, steps_);
  first.begin(policy_, 1, Optimizer(steps_));
  first.hand_over(1, 1);
  wait_for_owners(first, {0, 1, 0});
  const auto epochs = first.fetch(fetched_, [] {});
  first.push(epochs, gradients(fetched_, 0.01));
  first.fetch(fetched_, [] {});
  std::this_thread::sleep_for(milliseconds(2'500));  // until it has told
  ranks_.silence(1);
  EXPECT_TRUE(first.take_back(1));
  first.fetch(alone_, [] {});
  expect_equal(alone_, fetched_);
  ranks_.silence(1, false);
}

// Whoever is lost soon knows.
class ShardsInHaste : public Shards {
 protected:
  ShardsInHaste() : Shards(2) {}
};

TEST_F(ShardsInHaste, WhoeverTellsNonsenseIsLost) {
  constexpr std::uint8_t kBackup = 4;
  constexpr std::uint8_t kOver = 5;
  ParameterShards first(crew_, kRun, 3, policy_, steps_);
  const auto tell = [](dist::Member& member, std::uint8_t word, const std::string& rest) {
    dist::Writer note;
    note.number(kRun).number(word).number<std::uint64_t>(1);
    member.note(0, dist::Topic::kShards, note.take() + rest);
  };
  StateWriter shard;
  shard.put("epoch", std::int64_t{1});
  shard.put("values.part.b", torch::zeros({4}));
  tell(one_, kBackup, shard.bytes("shard"));
  tell(two_, kOver, "");
  for (int i = 0; i < 500 && (crew_.present(1) || crew_.present(2)); ++i) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_THAT(crew_.take_notes(),
              testing::UnorderedElementsAre(HasSubstr("'part.b' of shard 1 has another shape"),
                                            HasSubstr("rank 0's to do")));
}

}  // namespace
}  // namespace emplace::learn
