#include "learn/methods/episodes.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "learn/every_trajectory.h"
#include "learn/methods/episode_policy.h"
#include "learn/methods/episode_run.h"
#include "learn/train/state.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

// A chain of four and an independent branch of two, whose parameters do not all fit on one device:
// the best is the branch on the other one.
std::shared_ptr<const Problem> chain_and_branch() {
  TimedGraph graph;
  TensorId at = graph.op("c0", 100, {graph.parameter("pc", 40'000)}, 100'000);
  for (int i = 1; i < 4; ++i) at = graph.op("c" + std::to_string(i), 100, {at}, 100'000);
  const TensorId branch = graph.op("b0", 150, {graph.parameter("pb", 40'000)}, 100'000);
  graph.op("b1", 150, {branch}, 100'000);
  return compile_timed(graph.build(), gpu_cluster(2, 300'000));
}

std::shared_ptr<const Problem> episode_fork_and_join() {
  TimedGraph graph;
  const TensorId first = graph.op("first", 50, {});
  std::vector<TensorId> parts;
  for (int i = 0; i < 6; ++i) {
    parts.push_back(graph.op("part" + std::to_string(i), 100, {first}, 20'000));
  }
  graph.op("last", 50, parts);
  return compile_timed(graph.build(), gpu_cluster(2));
}

UnitGraph units_of(const Problem& problem) {
  return group_by_colocation(problem);
}

Budget episodes_limited_to(std::int64_t evaluations) {
  Budget budget;
  budget.evaluations = evaluations;
  return budget;
}
Budget with_threads(int threads) {
  Budget budget;
  budget.threads = threads;
  return budget;
}

std::vector<UnitId> in_order(UnitId count) {
  std::vector<UnitId> turns;
  for (UnitId unit = 0; unit < count; ++unit) turns.push_back(unit);
  return turns;
}

struct World {
  explicit World(std::shared_ptr<const Problem> problem_in,
                 const MessagePassingSettings& network = {}, const Budget& budget = {})
      : problem(std::move(problem_in)),
        context(problem),
        environment(context, budget, "test"),
        policy(units_of(*problem), network, true, torch::kCPU, rng),
        runtimes(*problem, {}) {}

  std::vector<Trajectory> play(std::size_t workers, const std::vector<DeviceId>& from) {
    std::vector<Trajectory> trajectories(
        workers, {.devices = from, .turns = in_order(policy.units().size())});
    report = play_episode(policy, runtimes, environment, rng, trajectories);
    return trajectories;
  }
  std::vector<DeviceId> zeros() const { return std::vector<DeviceId>(policy.units().size(), 0); }

  Rng rng{3};
  std::shared_ptr<const Problem> problem;
  PlaceContext context;
  Environment environment;
  EpisodePolicy policy;
  Runtimes runtimes;
  EpisodeReport report;
};

TEST(EpisodeRewards, improvements_telescope) {
  const std::vector<double> runtimes{5, 3, 4, 2.5};
  const std::vector<double> returns = returns_of(EpisodeReward::kImprovement, runtimes);
  ASSERT_EQ(returns.size(), 3U);
  double sum = 0;
  for (std::size_t t = 0; t < 3; ++t) {
    const double after = t + 1 < 3 ? returns[t + 1] : 0;
    EXPECT_DOUBLE_EQ(returns[t] - after, runtimes[t] - runtimes[t + 1]);  // the reward of step t
    sum += returns[t] - after;
  }
  EXPECT_DOUBLE_EQ(sum, runtimes.front() - runtimes.back());
  EXPECT_GT(returns[0], 0);  // it got faster, which is good
}

TEST(EpisodeRewards, terminal_and_minimum) {
  const std::vector<double> runtimes{5, 3, 4, 2, 6};
  EXPECT_EQ(returns_of(EpisodeReward::kTerminal, runtimes), (std::vector<double>{-6, -6, -6, -6}));
  EXPECT_EQ(returns_of(EpisodeReward::kMinimum, runtimes), (std::vector<double>{3, 1, 2, -4}));
}

TEST(EpisodeRewards, runtimes_grow_with_the_overflow_up_to_the_cap) {
  const auto problem = chain_and_branch();  // 700 us of ops, 300 kB a device
  const Runtimes runtimes(*problem, {.penalty = 4, .cap = 5});
  EXPECT_DOUBLE_EQ(runtimes({.step = 350'000}), 0.5);
  EXPECT_DOUBLE_EQ(runtimes({.step = 350'000, .overflow = 150'000}), 2.5);
  EXPECT_DOUBLE_EQ(runtimes({.step = 350'000, .overflow = 900'000}), 5);
  EXPECT_DOUBLE_EQ(runtimes({.valid = false}), 5);
  const Runtimes logarithms(*problem, {.penalty = 4, .cap = 5, .logarithm = true});
  EXPECT_DOUBLE_EQ(logarithms({.step = 350'000}), std::log(0.5));
}

TEST(EpisodeRewards, runtimes_can_be_in_seconds_and_gigabytes) {
  const Runtimes runtimes(*chain_and_branch(), {.penalty = 2, .cap = 10, .in_seconds = true});
  EXPECT_DOUBLE_EQ(runtimes({.step = 350'000'000}), 0.35);
  EXPECT_DOUBLE_EQ(runtimes({.step = 350'000'000, .overflow = 500'000'000}), 1.35);
  EXPECT_DOUBLE_EQ(runtimes({.step = 350'000'000, .overflow = 50'000'000'000}), 10);
}

TEST(EpisodeRewards, a_baseline_forgets_old_episodes) {
  StepBaseline baseline(2);
  baseline.add({100, 200});
  baseline.add({1, 2});
  baseline.add({3, 6});
  EXPECT_EQ(baseline.values(), (std::vector<double>{2, 4}));
}

TEST(PlacementStates, features_say_what_is_where_and_whose_turn_it_is) {
  const auto problem = chain_and_branch();
  const UnitGraph units = units_of(*problem);
  const StateFeatures features(units, true);
  ASSERT_EQ(features.columns(), 5 + 1 + 2);
  PlacementState state{std::vector<DeviceId>(units.size(), 0),
                       std::vector<std::uint8_t>(units.size(), 0),
                       std::vector<float>(units.size(), 0.25F), 1};
  state.devices[2] = 1;
  state.visits[0] = 1;
  state.starts[2] = 1;
  const PlacementState* one = &state;
  const torch::Tensor x = features({&one, 1})[0];
  const auto row = [&](std::int64_t unit) {
    const torch::Tensor values = x[unit].contiguous();
    return std::vector<float>(values.data_ptr<float>(), values.data_ptr<float>() + 8);
  };
  for (UnitId unit = 0; unit < 3; ++unit) {
    const std::vector<float> values = row(unit);
    EXPECT_FLOAT_EQ(values[2], unit == 0 ? 1 : 0);         // visits
    EXPECT_FLOAT_EQ(values[3], unit == 1 ? 1 : 0);         // whose turn
    EXPECT_FLOAT_EQ(values[4], unit == 2 ? 0.75F : 0.0F);  // start after the current one's
    EXPECT_FLOAT_EQ(values[6], unit == 2 ? 0 : 1);
    EXPECT_FLOAT_EQ(values[7], unit == 2 ? 1 : 0);
  }
  EXPECT_FLOAT_EQ(x.select(1, 0).max().item<float>(), 1);  // cost, in parts of the largest
}

TEST(PlacementStates, starts_are_those_of_the_simulated_step) {
  World world(chain_and_branch());
  const Placement placement(world.problem->num_ops(), 0);
  const auto result = world.environment.evaluate_with_starts({placement}).get();
  const Timeline timeline = world.context.evaluator().simulator()->run(placement, {});
  ASSERT_EQ(result[0].starts.size(), timeline.ops.size());
  for (std::size_t op = 0; op < timeline.ops.size(); ++op) {
    EXPECT_EQ(result[0].starts[op], timeline.ops[op].start) << op;
  }
  EXPECT_EQ(result[0].outcome.step, timeline.step);
}

TEST(Episodes, scores_decisions_again_as_when_they_were_made) {
  World world(chain_and_branch());
  const std::vector<Trajectory> trajectories = world.play(3, world.zeros());
  EXPECT_TRUE(world.report.complete);
  for (const Trajectory& trajectory : trajectories) {
    ASSERT_EQ(trajectory.decisions.size(), world.policy.units().size());
    ASSERT_EQ(trajectory.runtimes.size(), trajectory.decisions.size() + 1);
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

TEST(Episodes, runtimes_are_those_of_the_visited_placements) {
  World world(chain_and_branch());
  const std::vector<Trajectory> trajectories = world.play(2, world.zeros());
  for (const Trajectory& trajectory : trajectories) {
    for (std::size_t t = 0; t < trajectory.decisions.size(); ++t) {
      const Evaluation value = world.context.evaluator().evaluate(
          world.policy.units().expand(trajectory.decisions[t].state.devices));
      EXPECT_DOUBLE_EQ(trajectory.runtimes[t],
                       world.runtimes({.step = value.step, .overflow = value.overflow}));
    }
  }
}

TEST(Episodes, count_steps_that_move_nothing_where_asked) {
  for (const bool count_stays : {false, true}) {
    World world(chain_and_branch());
    const UnitId units = world.policy.units().size();
    std::vector<Trajectory> trajectories(3, {.devices = world.zeros(), .turns = in_order(units)});
    EXPECT_TRUE(play_episode(world.policy, world.runtimes, world.environment, world.rng,
                             trajectories, count_stays)
                    .complete);
    std::int64_t moves = 0;
    for (const Trajectory& trajectory : trajectories) {
      ASSERT_EQ(trajectory.runtimes.size(), units + 1);
      for (const Decision& decision : trajectory.decisions) {
        moves += decision.state.devices[decision.state.current] != decision.device ? 1 : 0;
      }
    }
    ASSERT_LT(moves, 3 * static_cast<std::int64_t>(units));
    EXPECT_EQ(world.context.evaluations(), 3 + (count_stays ? 3 * units : moves));
  }
}

// A parameter is the first op and its update the last: their unit's turn comes when all others
// have had theirs.
TEST(Episodes, take_turns_in_topological_order) {
  TimedGraph graph;
  const TensorId weight = graph.parameter("w");
  const TensorId forward = graph.op("forward", 10, {weight});
  const TensorId backward = graph.backward("backward", 10, {forward, weight});
  graph.update("update", 1, {weight, backward});
  const World world(compile_timed(graph.build(), gpu_cluster(2)));
  const std::span<const UnitId> order = world.policy.order();
  EXPECT_EQ(std::vector<UnitId>(order.begin(), order.end()), (std::vector<UnitId>{1, 2, 0}));
}

TEST(Episodes, stop_where_the_budget_of_evaluations_does) {
  for (const std::int64_t evaluations : {1, 2, 5, 11}) {
    World world(chain_and_branch(), {}, episodes_limited_to(evaluations));
    const std::vector<Trajectory> trajectories = world.play(4, world.zeros());
    EXPECT_LE(world.context.evaluations(), evaluations);
    EXPECT_FALSE(world.report.complete);
  }
}

TEST(Episodes, gradient_is_that_of_the_expected_improvement) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 100, {}, 10'000);
  graph.op("b", 100, {}, 10'000);
  graph.op("c", 50, {a}, 10'000);
  for (const EpisodeReward reward : {EpisodeReward::kImprovement, EpisodeReward::kTerminal}) {
    TimedGraph same = graph;
    World world(compile_timed(same.build(), gpu_cluster(2)), {.rounds = 2});
    expect_gradient_of_improvement({world.policy, world.environment, world.runtimes, world.zeros()},
                                   reward);
  }
}

std::string after_rounds(Method& method, PlaceContext& context, Rng& rng, int rounds, int threads) {
  Environment environment(context, with_threads(threads), "test");
  for (int round = 0; round < rounds; ++round) {
    TrainingPoint point;
    method.round(environment, rng, point);
  }
  StateWriter state;
  method.save(state);
  return state.bytes();
}

MethodPtr episodes_on(const Problem& problem, EpisodeSettings settings = {}) {
  settings.network.rounds = 2;
  Rng rng(1);
  return placeto_episodes(units_of(problem), settings, "cpu", rng);
}

void expect_to_go_on(const std::shared_ptr<const Problem>& problem,
                     const EpisodeSettings& settings) {
  PlaceContext context(problem);
  Rng rng(5);
  const MethodPtr whole = episodes_on(*problem, settings);
  const std::string expected = after_rounds(*whole, context, rng, 6, 1);
  Rng rng_again(5);
  const std::string half = after_rounds(*episodes_on(*problem, settings), context, rng_again, 3, 1);
  const MethodPtr resumed = episodes_on(*problem, settings);
  resumed->load(StateReader(half, "checkpoint"));
  EXPECT_EQ(after_rounds(*resumed, context, rng_again, 3, 1), expected);
}

TEST(Episodes, go_on_from_a_checkpoint_as_if_never_stopped) {
  for (const std::int64_t learned_groups : {0, 3}) {
    for (const EpisodeStart start : {EpisodeStart::kRandom, EpisodeStart::kBest}) {
      expect_to_go_on(chain_and_branch(), {.learned_groups = learned_groups,
                                           .workers = 3,
                                           .start = start,
                                           .baseline_episodes = 3,
                                           .greedy_every = 2});
    }
  }
}

TEST(Episodes, threads_change_nothing) {
  const auto problem = episode_fork_and_join();
  PlaceContext context(problem);
  for (const std::int64_t learned_groups : {0, 4}) {
    std::vector<std::string> results;
    for (const int threads : {1, 4}) {
      Rng rng(5);
      const MethodPtr method = episodes_on(*problem, {.learned_groups = learned_groups});
      results.push_back(after_rounds(*method, context, rng, 3, threads));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

// How many evaluations there were whenever something better was heard of, where each takes another
// time.
std::vector<std::int64_t> course_of_episodes(const std::shared_ptr<const Problem>& problem,
                                             int threads) {
  PlaceContext context(problem);
  const Simulator simulator(problem);
  std::atomic<int> next{0};
  context.evaluator().measure_with([&](const Placement& placement, const ReadyOrder& order) {
    std::this_thread::sleep_for(std::chrono::microseconds((next++ * 7919 / threads) % 500));
    return simulator.evaluate(placement, order, *simulator.make_workspace());
  });
  std::vector<std::int64_t> counts;
  const auto listening = context.incumbent().listen(
      [&](const Incumbent&) { counts.push_back(context.evaluations()); });
  Rng rng(5);
  after_rounds(*episodes_on(*problem), context, rng, 4, threads);
  return counts;
}

TEST(Episodes, evaluations_are_counted_the_same_while_others_are_under_way) {
  const auto problem = episode_fork_and_join();
  const std::vector<std::int64_t> one = course_of_episodes(problem, 1);
  EXPECT_GE(one.size(), 2U);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(course_of_episodes(problem, 4), one);
}

// The mean runtime at the end of an episode, over the last rounds.
double learned_runtime(const Problem& problem, PlaceContext& context,
                       const EpisodeSettings& settings, int rounds) {
  const MethodPtr method = episodes_on(problem, settings);
  Environment environment(context, Budget{}, "test");
  Rng rng(2);
  double sum = 0;
  for (int round = 0; round < rounds; ++round) {
    TrainingPoint point;
    method->round(environment, rng, point);
    if (round >= rounds - 10) sum += point.mean_cost / 10;
  }
  return sum;
}

TEST(Episodes, learn_to_split_a_chain_from_a_branch) {
  const auto problem = chain_and_branch();
  for (const EpisodeReward reward :
       {EpisodeReward::kImprovement, EpisodeReward::kTerminal, EpisodeReward::kMinimum}) {
    PlaceContext context(problem);
    const EpisodeSettings settings{.reward = reward,
                                   .entropy_weight = 0.1,
                                   .entropy_episodes = 100,
                                   .last_entropy_weight = 0,
                                   .learning_rate = 5e-3,
                                   .learning_episodes = 200};
    const double at_first = learned_runtime(*problem, context, settings, 10);
    const double learned = learned_runtime(*problem, context, settings, 200);
    // The chain of 400 us on one device, the branch on the other.
    const double best = 400.0 / 700.0;
    EXPECT_EQ(context.incumbent().value()->step, 400'000);
    EXPECT_TRUE(context.incumbent().value()->fits());
    EXPECT_GT(at_first, 1.3 * best);
    EXPECT_LT(learned, 1.05 * best) << static_cast<int>(reward);
  }
}

TEST(Episodes, learn_groups_together_with_their_devices) {
  const auto problem = chain_and_branch();
  PlaceContext context(problem);
  const EpisodeSettings settings{.learned_groups = 3,
                                 .entropy_weight = 0.1,
                                 .entropy_episodes = 50,
                                 .last_entropy_weight = 0,
                                 .learning_rate = 5e-3,
                                 .learning_episodes = 100};
  const MethodPtr method = episodes_on(*problem, settings);
  Rng rng(2);
  const auto weights = [&](int rounds) {
    const std::string state = after_rounds(*method, context, rng, rounds, 1);
    return StateReader(state, "state").tensor("policy.grouper.hidden.weight");
  };
  const torch::Tensor first = weights(1);
  EXPECT_FALSE(torch::equal(first, weights(40)));
  const std::optional<Solution> best = context.incumbent().best();
  ASSERT_TRUE(best);
  check_placement(*problem, best->placement);
  EXPECT_TRUE(best->value.fits());
  EXPECT_LT(best->value.step, 700'000);  // better than on one device
}

TEST(Episodes, imitate_a_placement) {
  const auto problem = chain_and_branch();
  PlaceContext context(problem);
  Environment environment(context, Budget{}, "test");
  Placement goal(problem->num_ops(), 1);
  for (OpId op = 0; op < problem->num_ops(); ++op) {
    if (problem->graph().op_name(op).find('c') != std::string::npos) goal[op] = 0;
  }
  const Evaluation value = context.evaluator().evaluate(goal);
  const auto cost_of_an_episode = [&](bool imitated) {
    const MethodPtr method = episodes_on(*problem, {.greedy_every = 0});
    Rng rng(4);
    if (imitated) method->imitate(goal, environment, rng);
    TrainingPoint point;
    method->round(environment, rng, point);
    return point.mean_cost;
  };
  const double goal_cost = Runtimes(*problem, {})({.step = value.step, .overflow = value.overflow});
  const double without = cost_of_an_episode(false) - goal_cost;
  EXPECT_GT(without, 0.1);
  EXPECT_LT(cost_of_an_episode(true) - goal_cost, 0.5 * without);
}

}  // namespace
}  // namespace emplace::learn
