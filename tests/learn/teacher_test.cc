#include "learn/general/teacher.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "learn/general/kinds.h"
#include "learn/general/policy_file.h"
#include "learn/general/pupil.h"
#include "learn/train/state.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

constexpr GeneralNetwork kSmall{.width = 8, .layers = 1};

std::shared_ptr<const Problem> chain_of(int ops, int devices) {
  TimedGraph graph;
  TensorId at = graph.op("op0", 50, {});
  for (int i = 1; i < ops; ++i) {
    at = graph.op(std::string("op").append(std::to_string(i)), 50, {at}, 20'000);
  }
  return compile_timed(graph.build(), gpu_cluster(devices));
}

Exercise exercise_on(const std::shared_ptr<const Problem>& problem) {
  Exercise exercise;
  exercise.name = "chain";
  exercise.evaluator = std::make_shared<Evaluator>(problem);
  // The second half first: nothing like the slices that a policy begins with.
  Placement example(problem->num_ops(), 0);
  for (OpId op = 0; op < problem->num_ops() / 2; ++op) example[op] = 1;
  exercise.example = example;
  exercise.reference_seconds = 1e-3;
  return exercise;
}

std::vector<Exercise> two_exercises() {
  return {exercise_on(chain_of(4, 2)), exercise_on(chain_of(5, 3))};
}

TeacherSettings settings_of(const std::string& kind, std::int64_t imitation_steps,
                            std::int64_t steps) {
  return {.kind = kind,
          .network = kSmall,
          .imitation_steps = imitation_steps,
          .steps = steps,
          .exercises_per_step = 2};
}

Taught taught(const TeacherSettings& settings, const std::string& begin_from = {},
              const Budget& budget = {}, std::uint64_t seed = 1, const TeacherHooks& hooks = {}) {
  return teach(two_exercises(), settings, begin_from, "a card", budget, Rng(seed), hooks);
}

std::vector<torch::Tensor> parameters_in(const Taught& result, const std::string& kind) {
  Rng rng(99);
  const auto problem = chain_of(3, 2);
  const PupilPtr pupil = make_pupil(kind, *problem, kSmall, "cpu", rng);
  PolicyFile(result.policy, "taught").load_into(pupil->parameters());
  return pupil->parameters().values();
}

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const torch::Tensor& x, const torch::Tensor& y) { return x.equal(y); });
}

class TeacherOf : public ::testing::TestWithParam<std::string> {};

TEST_P(TeacherOf, threads_change_nothing) {
  TeacherSettings settings = settings_of(GetParam(), 1, 1);
  settings.encoder_steps = 1;
  Budget budget;
  const Taught one = taught(settings, {}, budget);
  budget.threads = 2;
  const Taught two = taught(settings, {}, budget);
  EXPECT_TRUE(one.policy == two.policy);
  EXPECT_EQ(one.evaluations, two.evaluations);
  EXPECT_GT(one.evaluations, 0);
  EXPECT_TRUE(one.whole);
  EXPECT_FALSE(taught(settings, {}, budget, 2).policy == one.policy) << "the seed decides";
}

TEST_P(TeacherOf, imitation_makes_examples_likelier) {
  TeacherSettings settings = settings_of(GetParam(), 12, 0);
  settings.imitation_rate = 0.02;
  std::vector<double> likelihoods;
  TeacherHooks hooks;
  hooks.on_step = [&](const LessonReport& report) {
    EXPECT_EQ(report.stage, "imitation");
    EXPECT_EQ(report.steps, 12);
    likelihoods.push_back(report.likelihood);
  };
  taught(settings, {}, {}, 1, hooks);
  ASSERT_EQ(likelihoods.size(), 12U);
  EXPECT_GT(likelihoods.back(), likelihoods.front() + 0.05);
  EXPECT_LE(likelihoods.back(), 1);
}

TEST_P(TeacherOf, goes_on_from_another_policy) {
  const Taught first = taught(settings_of(GetParam(), 0, 1));
  const Taught copy = taught(settings_of(GetParam(), 0, 0), first.policy, {}, 2);
  const std::vector<torch::Tensor> parameters = parameters_in(first, GetParam());
  EXPECT_TRUE(same(parameters_in(copy, GetParam()), parameters));
  EXPECT_EQ(copy.evaluations, 0);
  const Taught further = taught(settings_of(GetParam(), 0, 1), first.policy, {}, 2);
  EXPECT_FALSE(same(parameters_in(further, GetParam()), parameters));
  const Taught anew = taught(settings_of(GetParam(), 0, 0), {}, {}, 2);
  EXPECT_FALSE(same(parameters_in(anew, GetParam()), parameters));
}

TEST_P(TeacherOf, leaves_a_policy_when_it_is_stopped) {
  const std::atomic<bool> cancelled{true};
  Budget budget;
  budget.cancelled = &cancelled;
  const Taught result = taught(settings_of(GetParam(), 5, 5), {}, budget);
  EXPECT_FALSE(result.whole);
  EXPECT_EQ(result.evaluations, 0);
  const PolicyFile file(result.policy, "taught");
  EXPECT_EQ(file.kind(), GetParam());
  EXPECT_EQ(file.card(), "a cardsteps taken: 0\n");
  EXPECT_FALSE(parameters_in(result, GetParam()).empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, TeacherOf, ::testing::ValuesIn(general_kinds()),
                         [](const auto& param_info) { return param_info.param; });

TEST(Teacher, stops_where_the_budget_of_evaluations_does) {
  Budget budget;
  budget.evaluations = 100;
  const Taught result = taught(settings_of("gdp", 0, 1000), {}, budget);
  EXPECT_FALSE(result.whole);
  EXPECT_GT(result.evaluations, 0);
  EXPECT_LE(result.evaluations, 100);
}

TEST(Teacher, skips_what_has_no_example) {
  std::vector<Exercise> exercises = two_exercises();
  for (Exercise& exercise : exercises) exercise.example.reset();
  int steps = 0;
  TeacherHooks hooks;
  hooks.on_step = [&](const LessonReport& report) {
    EXPECT_EQ(report.stage, "practice");
    ++steps;
  };
  const Taught result = teach(exercises, settings_of("gdp", 3, 2), {}, "", {}, Rng(1), hooks);
  EXPECT_TRUE(result.whole);
  EXPECT_EQ(steps, 2);
}

TEST(Teacher, goes_on_past_a_step_whose_exercises_have_no_example) {
  std::vector<Exercise> exercises = two_exercises();
  exercises[1].example.reset();
  TeacherSettings settings = settings_of("gdp", 40, 0);
  settings.exercises_per_step = 1;
  int steps = 0;
  TeacherHooks hooks;
  hooks.on_step = [&](const LessonReport&) { ++steps; };
  teach(exercises, settings, {}, "", {}, Rng(1), hooks);
  EXPECT_GT(steps, 10);
}

TEST(Teacher, saves_now_and_then) {
  std::vector<std::string> saved;
  TeacherHooks hooks;
  hooks.save = [&](std::string_view bytes) { saved.emplace_back(bytes); };
  hooks.save_seconds = 0;
  const Taught result = taught(settings_of("gdp", 0, 3), {}, {}, 1, hooks);
  ASSERT_EQ(saved.size(), 3U);
  EXPECT_TRUE(saved.back() == result.policy);
  EXPECT_FALSE(saved.front() == result.policy);
}

TEST(Teacher, refuses_to_go_on_from_another_kind_or_network) {
  const auto error_of = [](const TeacherSettings& settings, const std::string& from) {
    try {
      taught(settings, from);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string policy = taught(settings_of("gdp", 0, 0)).policy;
  EXPECT_EQ(error_of(settings_of("gdp", 0, 0), policy), "no error");
  EXPECT_THAT(error_of(settings_of("placeto", 0, 0), policy), ::testing::HasSubstr("gdp"));
  TeacherSettings wider = settings_of("gdp", 0, 0);
  wider.network.width = 16;
  EXPECT_THAT(error_of(wider, policy), ::testing::HasSubstr("width 8"));
  TeacherSettings shallower = settings_of("gdp", 0, 0);
  shallower.network.layers = 0;
  EXPECT_THAT(error_of(shallower, policy), ::testing::HasSubstr("layers 1"));
}

}  // namespace
}  // namespace emplace::learn
