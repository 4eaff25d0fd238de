#include "learn/general/multi_graph_trainer.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "learn/general/agent.h"
#include "learn/general/kinds.h"
#include "learn/general/policy_file.h"
#include "learn/train/state.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

constexpr GeneralNetwork kSmallTrained{.width = 8, .layers = 1};

std::shared_ptr<const Problem> training_chain(int ops, int devices) {
  TimedGraph graph;
  TensorId at = graph.op("op0", 50, {});
  for (int i = 1; i < ops; ++i) {
    at = graph.op(std::string("op").append(std::to_string(i)), 50, {at}, 20'000);
  }
  return compile_timed(graph.build(), gpu_cluster(devices));
}

TrainingTask task_on(const std::shared_ptr<const Problem>& problem) {
  TrainingTask task;
  task.name = "chain";
  task.context = std::make_shared<PlaceContext>(problem);
  // The second half first: nothing like the slices that a policy begins with.
  Placement example(problem->num_ops(), 0);
  for (OpId op = 0; op < problem->num_ops() / 2; ++op) example[op] = 1;
  task.example = example;
  task.reference_seconds = 1e-3;
  return task;
}

std::vector<TrainingTask> two_tasks() {
  return {task_on(training_chain(4, 2)), task_on(training_chain(5, 3))};
}

MultiGraphSettings settings_of(const std::string& kind, std::int64_t imitation_steps,
                               std::int64_t steps) {
  return {.kind = kind,
          .network = kSmallTrained,
          .imitation_steps = imitation_steps,
          .steps = steps,
          .tasks_per_step = 2};
}

TrainedPolicy trained(const MultiGraphSettings& settings, const std::string& begin_from = {},
                      const Budget& budget = {}, std::uint64_t seed = 1,
                      const TrainingHooks& hooks = {}) {
  return train_on_graphs(two_tasks(), settings, begin_from, "a card", budget, Rng(seed), hooks);
}

std::vector<torch::Tensor> parameters_in(const TrainedPolicy& result, const std::string& kind) {
  Rng rng(99);
  const auto problem = training_chain(3, 2);
  const GeneralAgentPtr agent = make_agent(kind, *problem, kSmallTrained, "cpu", rng);
  PolicyFile(result.policy, "trained").load_into(agent->parameters());
  return agent->parameters().values();
}

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const torch::Tensor& x, const torch::Tensor& y) { return x.equal(y); });
}

TEST(MultiGraphTrainer, takes_all_tasks_equally_often) {
  std::vector<TrainingTask> tasks = two_tasks();
  tasks.push_back(task_on(training_chain(6, 2)));
  std::vector<std::shared_ptr<PlaceContext>> contexts;
  for (const TrainingTask& task : tasks) contexts.push_back(task.context);
  // Six passes over three tasks, two at a time: every other pass ends within a step.
  const MultiGraphSettings settings = settings_of("gdp", 0, 9);
  train_on_graphs(tasks, settings, {}, "a card", {}, Rng(1), {});
  EXPECT_GT(contexts[0]->evaluations(), 0);
  EXPECT_EQ(contexts[1]->evaluations(), contexts[0]->evaluations());
  EXPECT_EQ(contexts[2]->evaluations(), contexts[0]->evaluations());
}

class MultiGraphTrainerOf : public ::testing::TestWithParam<std::string> {};

TEST_P(MultiGraphTrainerOf, threads_change_nothing) {
  MultiGraphSettings settings = settings_of(GetParam(), 1, 1);
  settings.encoder_steps = 1;
  Budget budget;
  const TrainedPolicy one = trained(settings, {}, budget);
  budget.threads = 2;
  const TrainedPolicy two = trained(settings, {}, budget);
  EXPECT_TRUE(one.policy == two.policy);
  EXPECT_EQ(one.evaluations, two.evaluations);
  EXPECT_GT(one.evaluations, 0);
  EXPECT_TRUE(one.whole);
  EXPECT_FALSE(trained(settings, {}, budget, 2).policy == one.policy) << "the seed decides";
}

TEST_P(MultiGraphTrainerOf, imitation_makes_examples_likelier) {
  MultiGraphSettings settings = settings_of(GetParam(), 12, 0);
  settings.imitation_rate = 0.02;
  std::vector<double> likelihoods;
  TrainingHooks hooks;
  hooks.on_step = [&](const TrainingReport& report) {
    EXPECT_EQ(report.phase, "imitation");
    EXPECT_EQ(report.steps, 12);
    likelihoods.push_back(report.likelihood);
  };
  trained(settings, {}, {}, 1, hooks);
  ASSERT_EQ(likelihoods.size(), 12U);
  EXPECT_GT(likelihoods.back(), likelihoods.front() + 0.05);
  EXPECT_LE(likelihoods.back(), 1);
}

TEST_P(MultiGraphTrainerOf, goes_on_from_another_policy) {
  const TrainedPolicy first = trained(settings_of(GetParam(), 0, 1));
  const TrainedPolicy copy = trained(settings_of(GetParam(), 0, 0), first.policy, {}, 2);
  const std::vector<torch::Tensor> parameters = parameters_in(first, GetParam());
  EXPECT_TRUE(same(parameters_in(copy, GetParam()), parameters));
  EXPECT_EQ(copy.evaluations, 0);
  const TrainedPolicy further = trained(settings_of(GetParam(), 0, 1), first.policy, {}, 2);
  EXPECT_FALSE(same(parameters_in(further, GetParam()), parameters));
  const TrainedPolicy anew = trained(settings_of(GetParam(), 0, 0), {}, {}, 2);
  EXPECT_FALSE(same(parameters_in(anew, GetParam()), parameters));
}

TEST_P(MultiGraphTrainerOf, leaves_a_policy_when_it_is_stopped) {
  const std::atomic<bool> cancelled{true};
  Budget budget;
  budget.cancelled = &cancelled;
  const TrainedPolicy result = trained(settings_of(GetParam(), 5, 5), {}, budget);
  EXPECT_FALSE(result.whole);
  EXPECT_EQ(result.evaluations, 0);
  const PolicyFile file(result.policy, "trained");
  EXPECT_EQ(file.kind(), GetParam());
  EXPECT_EQ(file.card(), "a cardsteps taken: 0\n");
  EXPECT_FALSE(parameters_in(result, GetParam()).empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, MultiGraphTrainerOf, ::testing::ValuesIn(general_kinds()),
                         [](const auto& param_info) { return param_info.param; });

TEST(MultiGraphTrainer, stops_where_the_budget_of_evaluations_does) {
  Budget budget;
  budget.evaluations = 100;
  const TrainedPolicy result = trained(settings_of("gdp", 0, 1000), {}, budget);
  EXPECT_FALSE(result.whole);
  EXPECT_GT(result.evaluations, 0);
  EXPECT_LE(result.evaluations, 100);
}

TEST(MultiGraphTrainer, skips_what_has_no_example) {
  std::vector<TrainingTask> tasks = two_tasks();
  for (TrainingTask& task : tasks) task.example.reset();
  int steps = 0;
  TrainingHooks hooks;
  hooks.on_step = [&](const TrainingReport& report) {
    EXPECT_EQ(report.phase, "practice");
    ++steps;
  };
  const TrainedPolicy result =
      train_on_graphs(tasks, settings_of("gdp", 3, 2), {}, "", {}, Rng(1), hooks);
  EXPECT_TRUE(result.whole);
  EXPECT_EQ(steps, 2);
}

TEST(MultiGraphTrainer, goes_on_past_a_step_whose_tasks_have_no_example) {
  std::vector<TrainingTask> tasks = two_tasks();
  tasks[1].example.reset();
  MultiGraphSettings settings = settings_of("gdp", 40, 0);
  settings.tasks_per_step = 1;
  int steps = 0;
  TrainingHooks hooks;
  hooks.on_step = [&](const TrainingReport&) { ++steps; };
  train_on_graphs(tasks, settings, {}, "", {}, Rng(1), hooks);
  EXPECT_GT(steps, 10);
}

TEST(MultiGraphTrainer, saves_now_and_then) {
  std::vector<std::string> saved;
  TrainingHooks hooks;
  hooks.save = [&](std::string_view bytes) { saved.emplace_back(bytes); };
  hooks.save_seconds = 0;
  const TrainedPolicy result = trained(settings_of("gdp", 0, 3), {}, {}, 1, hooks);
  ASSERT_EQ(saved.size(), 3U);
  EXPECT_TRUE(saved.back() == result.policy);
  EXPECT_FALSE(saved.front() == result.policy);
}

TEST(MultiGraphTrainer, refuses_to_go_on_from_another_kind_or_network) {
  const auto error_of = [](const MultiGraphSettings& settings, const std::string& from) {
    try {
      trained(settings, from);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string policy = trained(settings_of("gdp", 0, 0)).policy;
  EXPECT_EQ(error_of(settings_of("gdp", 0, 0), policy), "no error");
  EXPECT_THAT(error_of(settings_of("placeto", 0, 0), policy), ::testing::HasSubstr("gdp"));
  MultiGraphSettings wider = settings_of("gdp", 0, 0);
  wider.network.width = 16;
  EXPECT_THAT(error_of(wider, policy), ::testing::HasSubstr("width 8"));
  MultiGraphSettings shallower = settings_of("gdp", 0, 0);
  shallower.network.layers = 0;
  EXPECT_THAT(error_of(shallower, policy), ::testing::HasSubstr("layers 1"));
}

}  // namespace
}  // namespace emplace::learn
