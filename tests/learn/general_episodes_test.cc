#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "learn/every_trajectory.h"
#include "learn/features/device_view.h"
#include "learn/general/episode_agent.h"
#include "learn/general/general_episode_policy.h"
#include "learn/general/kinds.h"
#include "learn/methods/episode_run.h"
#include "learn/nn/optimizer.h"
#include "learn/sampled_gradient.h"
#include "learn/train/state.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

constexpr GeneralNetwork kSmall{.width = 16};

std::shared_ptr<const Problem> general_fork_and_join(int devices, int parts = 6) {
  TimedGraph graph;
  const TensorId first = graph.op("first", 50, {graph.parameter("p", 10'000)});
  std::vector<TensorId> results;
  for (int i = 0; i < parts; ++i) {
    results.push_back(graph.op("part" + std::to_string(i), 100, {first}, 20'000));
  }
  graph.op("last", 50, results);
  return compile_timed(graph.build(), gpu_cluster(devices, 1'000'000));
}

std::shared_ptr<const Problem> chain(int devices, int length = 4) {
  TimedGraph graph;
  TensorId at = graph.op("c0", 100, {});
  for (int i = 1; i < length; ++i)
    at = graph.op(std::string("c").append(std::to_string(i)), 100, {at}, 50'000);
  return compile_timed(graph.build(), gpu_cluster(devices));
}

// A policy on one problem, with all that episodes need.
struct GeneralWorld {
  explicit GeneralWorld(std::shared_ptr<const Problem> problem_in)
      : problem(std::move(problem_in)),
        context(problem),
        environment(context, Budget{}, "test"),
        policy(group_by_colocation(*problem), kSmall, torch::kCPU, rng),
        runtimes(*problem, {}) {}

  std::vector<Trajectory> play(std::size_t workers) {
    std::vector<Trajectory> trajectories(workers, {.devices = policy.slices(), .turns = {}});
    for (Trajectory& trajectory : trajectories) {
      trajectory.devices = random_devices(policy, rng);
      for (UnitId unit = 0; unit < policy.units().size(); ++unit) trajectory.turns.push_back(unit);
    }
    play_episode(policy, runtimes, environment, rng, trajectories);
    return trajectories;
  }
  // So that it is not what first weights make of it.
  void move_parameters() {
    const torch::NoGradGuard no_gradients;
    for (torch::Tensor& tensor : policy.parameters().tensors()) {
      tensor += 0.3 * normals({tensor.sizes().begin(), tensor.sizes().end()}, rng);
    }
  }

  Rng rng{3};
  std::shared_ptr<const Problem> problem;
  PlaceContext context;
  Environment environment;
  GeneralEpisodePolicy policy;
  Runtimes runtimes;
};

GeneralAgentPtr agent_on(const Problem& problem) {
  Rng rng(1);
  return make_agent("placeto", problem, kSmall, "cpu", rng);
}

TEST(GeneralEpisodes, have_the_same_parameters_whatever_the_graph_and_the_devices) {
  const auto shapes = [](const Problem& problem) {
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> result;
    const GeneralAgentPtr agent = agent_on(problem);
    for (const auto& [name, tensor] : agent->parameters().named()) {
      result.emplace_back(name, tensor.sizes().vec());
    }
    return result;
  };
  const auto first = shapes(*chain(2));
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(shapes(*general_fork_and_join(5)), first);
  EXPECT_EQ(shapes(*general_fork_and_join(2, 200)), first);  // merged to fewer units
}

TEST(GeneralEpisodes, begin_with_slices_of_the_devices_in_use) {
  GeneralWorld world(chain(5, 6));
  world.policy.use(std::vector<DeviceId>{1, 3, 4});
  EXPECT_EQ(world.policy.slices(), (std::vector<DeviceId>{1, 1, 3, 3, 4, 4}));
}

TEST(GeneralEpisodes, choose_devices_in_use_only) {
  GeneralWorld world(general_fork_and_join(5));
  world.move_parameters();
  const std::vector<DeviceId> used{1, 3};
  world.policy.use(used);
  for (const Trajectory& trajectory : world.play(4)) {
    for (const Decision& decision : trajectory.decisions) {
      EXPECT_TRUE(std::binary_search(used.begin(), used.end(), decision.device));
      for (const DeviceId device : decision.state.devices) {
        EXPECT_TRUE(std::binary_search(used.begin(), used.end(), device));
      }
    }
  }
}

TEST(GeneralEpisodes, score_decisions_again_as_when_they_were_made) {
  GeneralWorld world(general_fork_and_join(3));
  world.move_parameters();
  for (const Trajectory& trajectory : world.play(3)) {
    std::vector<const PlacementState*> states;
    for (const Decision& decision : trajectory.decisions) states.push_back(&decision.state);
    const torch::Tensor again = world.policy.log_probs(states);
    for (std::size_t t = 0; t < states.size(); ++t) {
      const Decision& decision = trajectory.decisions[t];
      EXPECT_NEAR(again[static_cast<std::int64_t>(t)][decision.device].item<float>(),
                  decision.log_prob, 1e-5);
    }
  }
}

TEST(GeneralEpisodes, gradient_is_that_of_the_decisions) {
  GeneralWorld world(general_fork_and_join(3));
  const std::vector<Trajectory> trajectories = world.play(2);
  StepBaseline baseline(1);
  const std::vector<WeightedDecision> decisions =
      weighted_decisions(trajectories, EpisodeReward::kImprovement, baseline);
  const auto loss = [&] {
    const torch::NoGradGuard no_gradients;
    double sum = 0;
    for (const WeightedDecision& decision : decisions) {
      sum -= decision.advantage *
             world.policy.log_probs({&decision.state, 1})[0][decision.device].item<double>();
    }
    return sum;
  };
  const std::vector<torch::Tensor> gradient =
      gradient_of(world.policy, decisions, 0, 1).by_parameter;
  double square = 0;
  for (const torch::Tensor& part : gradient) square += part.pow(2).sum().item<double>();
  ASSERT_GT(square, 0);
  const double step = 0.002 / std::sqrt(square);
  const auto walk = [&](double length) {
    const torch::NoGradGuard no_gradients;
    std::vector<torch::Tensor> parameters = world.policy.parameters().tensors();
    for (std::size_t i = 0; i < gradient.size(); ++i) parameters[i].add_(gradient[i], length);
  };
  walk(step);
  const double up = loss();
  walk(-2 * step);
  EXPECT_NEAR((up - loss()) / (2 * step) / square, 1, 0.05);
}

TEST(GeneralEpisodes, gradient_is_that_of_the_expected_improvement) {
  for (const EpisodeReward reward : {EpisodeReward::kImprovement, EpisodeReward::kTerminal}) {
    GeneralWorld world(chain(2, 3));
    world.move_parameters();
    // A short one: with weights like these the policy is nearly certain, and changes fast.
    expect_gradient_of_improvement(
        {world.policy, world.environment, world.runtimes, world.policy.slices()}, reward, 0.0005);
  }
}

// As when a placement is refined: a block of units moves, one after the other, leaning to a device.
TEST(GeneralEpisodes, of_a_block_that_leans_teach_the_gradient_of_the_expected_improvement) {
  GeneralWorld world(chain(2, 4));
  world.move_parameters();
  const EpisodeWorld block{world.policy, world.environment, world.runtimes, {1, 1, 0, 1},
                           {2, 1},       {0.0F, 0.7F}};
  expect_gradient_of_improvement(block, EpisodeReward::kImprovement, 0.0005);
  const std::vector<torch::Tensor> exact = expected_gradient(block, EpisodeReward::kImprovement);
  Estimates estimates;
  constexpr std::size_t kWorkers = 200;
  for (int i = 0; i < 15; ++i) {
    std::vector<Trajectory> trajectories(
        kWorkers, {.devices = block.devices, .turns = block.turns, .leaning = block.leaning});
    play_episode(world.policy, world.runtimes, world.environment, world.rng, trajectories);
    StepBaseline baseline(1);
    std::vector<torch::Tensor> sum =
        gradient_of(world.policy,
                    weighted_decisions(trajectories, EpisodeReward::kImprovement, baseline), 0, 1)
            .by_parameter;
    // The mean that they are compared with has a part of each in it.
    for (torch::Tensor& part : sum) part /= static_cast<double>(kWorkers - 1);
    estimates.add(sum, exact);
  }
  estimates.expect_unbiased();
}

TEST(GeneralEpisodes, know_what_is_where) {
  GeneralWorld world(general_fork_and_join(3));  // 700 us of ops
  world.policy.use(std::vector<DeviceId>{0, 2});
  const StateColumns columns(world.policy.units(), world.policy.views());
  PlacementState state;
  state.devices.assign(world.policy.units().size(), 2);
  state.current = 2;  // one of the parts: reads what the first sends, and writes for the last
  state.devices[0] = state.devices[1] = 0;  // the parameter, and the first
  const PlacementState* one = &state;
  const torch::Tensor x = columns({&one, 1}, world.policy.used())[0];
  EXPECT_FLOAT_EQ(x[1].abs().sum().item<float>(), 0);  // is not used
  EXPECT_FLOAT_EQ(x[0][0].item<float>(), 0);
  EXPECT_FLOAT_EQ(x[2][0].item<float>(), 1);
  EXPECT_NEAR(x[0][1].item<float>(), 1.0 / 21, 1e-4);  // 1 kB of 21 kB
  EXPECT_NEAR(x[2][1].item<float>(), 20.0 / 21, 1e-4);
  EXPECT_NEAR(x[0][2].item<float>(), 150.0 / 350 / 2, 1e-4);
  EXPECT_NEAR(x[2][2].item<float>(), 650.0 / 350 / 2, 1e-4);
}

TEST(GeneralEpisodes, propose_the_same_whatever_the_chance) {
  const auto problem = general_fork_and_join(3);
  const auto proposed = [&](std::uint64_t seed) {
    PlaceContext context(problem);
    Environment environment(context, Budget{}, "test");
    const GeneralAgentPtr agent = agent_on(*problem);
    agent->use(std::vector<DeviceId>{0, 2});
    Rng rng(seed);
    agent->propose(1, environment, rng);
    EXPECT_LE(context.evaluations(), 9);
    return context.incumbent().best()->placement;
  };
  const Placement placement = proposed(1);
  EXPECT_EQ(proposed(2), placement);
  EXPECT_EQ(std::count(placement.begin(), placement.end(), DeviceId{1}), 0);
}

TEST(GeneralEpisodes, have_nothing_to_decide_on_one_device) {
  const auto problem = general_fork_and_join(3);
  PlaceContext context(problem);
  Environment environment(context, Budget{}, "test");
  const GeneralAgentPtr agent = agent_on(*problem);
  agent->use(std::vector<DeviceId>{1});
  Rng rng(1);
  TrainingPoint point;
  EXPECT_TRUE(agent->explore(environment, rng, point));
  for (const torch::Tensor& part : agent->gradient()) {
    EXPECT_EQ(part.abs().sum().item<float>(), 0);
  }
  agent->propose(1, environment, rng);
  EXPECT_EQ(context.incumbent().best()->placement, Placement(problem->num_ops(), 1));
}

// What follows from three rounds, perhaps with a checkpoint before the last.
std::vector<torch::Tensor> last_gradient(const Problem& problem, Environment& environment,
                                         bool interrupted) {
  GeneralAgentPtr agent = agent_on(problem);
  Rng rng(7);
  for (int round = 0; round < 3; ++round) {
    if (round == 2 && interrupted) {
      StateWriter state;
      agent->save(state);
      agent = agent_on(problem);
      agent->load(StateReader(state.bytes(), "checkpoint"));
    }
    TrainingPoint point;
    agent->explore(environment, rng, point);
  }
  return agent->gradient();
}

TEST(GeneralEpisodes, go_on_from_a_checkpoint_as_if_never_stopped) {
  const auto problem = general_fork_and_join(3);
  PlaceContext context(problem);
  Environment environment(context, Budget{}, "test");
  const std::vector<torch::Tensor> whole = last_gradient(*problem, environment, false);
  const std::vector<torch::Tensor> parts = last_gradient(*problem, environment, true);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(torch::equal(whole[i], parts[i]));
}

TEST(GeneralEpisodes, obey_the_budget) {
  const auto problem = general_fork_and_join(2);
  PlaceContext context(problem);
  Budget budget;
  budget.evaluations = 10;
  Environment environment(context, budget, "test");
  const GeneralAgentPtr agent = agent_on(*problem);
  Rng rng(1);
  TrainingPoint point;
  EXPECT_FALSE(agent->explore(environment, rng, point));
  agent->propose(3, environment, rng);
  EXPECT_LE(context.evaluations(), 10);
}

TEST(GeneralEpisodes, imitation_makes_a_placement_likely) {
  const auto problem = general_fork_and_join(3);
  PlaceContext context(problem);
  Environment environment(context, Budget{}, "test");
  const GeneralAgentPtr agent = agent_on(*problem);
  Placement goal(problem->num_ops(), 2);
  goal[0] = goal[1] = 0;  // nothing like slices
  goal[3] = 1;
  Optimizer optimizer({.learning_rate = 0.01, .clip_norm = 1});
  Rng rng(4);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    Imitation imitation = agent->imitate(goal, environment, rng);
    optimizer.step(agent->parameters().tensors(), std::move(imitation.gradient));
    if (step == 0) first = imitation.likelihood;
    last = imitation.likelihood;
  }
  EXPECT_LT(first, 0.5);
  EXPECT_GT(last, first + 0.2);
}

TEST(GeneralEpisodes, learn_from_what_they_explore) {
  const auto problem = chain(2, 6);  // what is exchanged takes half as long as the ops
  PlaceContext context(problem);
  Environment environment(context, Budget{}, "test");
  const GeneralAgentPtr agent = agent_on(*problem);
  Optimizer optimizer({.learning_rate = 0.01, .clip_norm = 1});
  Rng rng(4);
  std::vector<double> costs;
  for (int round = 0; round < 80; ++round) {
    TrainingPoint point;
    ASSERT_TRUE(agent->explore(environment, rng, point));
    costs.push_back(point.mean_cost);
    optimizer.step(agent->parameters().tensors(), agent->gradient());
  }
  const auto mean = [](auto first, auto end) {
    return std::accumulate(first, end, 0.0) / static_cast<double>(end - first);
  };
  EXPECT_LT(mean(costs.end() - 10, costs.end()), mean(costs.begin(), costs.begin() + 10));
}

}  // namespace
}  // namespace emplace::learn
