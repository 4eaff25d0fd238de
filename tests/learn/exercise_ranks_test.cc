// Training on ranks that are threads of this process: the policy is that of one rank, whatever
// becomes of the others.
#include "learn/general/exercise_ranks.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "dist/local_transport.h"
#include "learn/general/multi_graph_trainer.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr dist::PostOptions kImpatientRanks{.pulse_seconds = 0.05, .lost_after = 1};

TrainingTask chain_task(int ops, int devices) {
  TimedGraph graph;
  TensorId at = graph.op("op0", 50, {});
  for (int i = 1; i < ops; ++i) {
    at = graph.op(std::string("op").append(std::to_string(i)), 50 + 7 * i, {at}, 20'000);
  }
  TrainingTask task;
  task.name = "chain" + std::to_string(ops);
  task.context = std::make_shared<PlaceContext>(compile_timed(graph.build(), gpu_cluster(devices)));
  task.reference_seconds = 1e-3;
  task.example.emplace(task.context->problem().num_ops(), 0);
  for (OpId op = 0; op < task.context->problem().num_ops() / 2; ++op) (*task.example)[op] = 1;
  return task;
}

std::vector<TrainingTask> several_tasks() {
  std::vector<TrainingTask> tasks;
  for (int i = 0; i < 5; ++i) tasks.push_back(chain_task(4 + i, 2 + i % 2));
  tasks[2].example.reset();
  return tasks;
}

// As many as help, by default without going wrong.
using Work = std::function<std::string(int rank, dist::Reader&, dist::Line&, TrainingHelper&)>;

std::string plainly(int, dist::Reader& task, dist::Line& line, TrainingHelper& helper) {
  return helper.work(task, line);
}

class TrainingRanks {
 public:
  TrainingRanks(int size, MultiGraphSettings settings)
      : ranks_(size), size_(size), settings_(std::move(settings)) {}

  TrainedPolicy train(const Work& work = plainly, const TrainingHooks& hooks = {},
                      const Budget& budget = {}) {
    std::vector<std::unique_ptr<dist::Member>> members;
    std::vector<std::thread> threads;
    for (int rank = 1; rank < size_; ++rank) {
      members.push_back(std::make_unique<dist::Member>(ranks_.take(rank), kImpatientRanks, [] {}));
      threads.emplace_back([&, rank, member = members.back().get()] {
        const auto helper = help_with_exercises(several_tasks(), settings_, Rng(1), budget.threads);
        member->serve(0, [&](dist::Reader& task, dist::Line& line) {
          const auto kind = task.number<std::uint8_t>();
          EXPECT_EQ(kind, static_cast<std::uint8_t>(TrainingRankTask::kExercises));
          return work(rank, task, line, *helper);
        });
      });
    }
    TrainedPolicy result;
    {
      dist::Crew crew(ranks_.take(0), kImpatientRanks);
      TrainingHooks own = hooks;
      own.crew = &crew;
      result = train_on_graphs(several_tasks(), settings_, {}, "a card", budget, Rng(1), own);
      lost_ = crew.lost();
      notes_ = crew.take_notes();
    }
    for (std::thread& thread : threads) thread.join();
    return result;
  }

  void silence(int rank) { ranks_.silence(rank); }
  int lost() const { return lost_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  dist::LocalRanks ranks_;
  int size_;
  MultiGraphSettings settings_;
  int lost_ = 0;
  std::vector<std::string> notes_;
};

MultiGraphSettings all_phases(const std::string& kind) {
  return {.kind = kind,
          .network = {.width = 8, .layers = 1},
          .encoder_steps = 2,
          .imitation_steps = 3,
          .steps = 3,
          .tasks_per_step = 4};
}

TrainedPolicy alone(const MultiGraphSettings& settings) {
  return train_on_graphs(several_tasks(), settings, {}, "a card", {}, Rng(1), {});
}

class TrainingOnRanks : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainingOnRanks, the_policy_does_not_depend_on_them) {
  const MultiGraphSettings settings = all_phases(GetParam());
  const TrainedPolicy expected = alone(settings);
  for (const int ranks : {2, 4}) {
    for (const int threads : {1, 3}) {
      Budget budget;
      budget.threads = threads;
      TrainingRanks training(ranks, settings);
      std::atomic<int> elsewhere{0};
      const TrainedPolicy result = training.train(
          [&](int, dist::Reader& task, dist::Line& line, TrainingHelper& helper) {
            ++elsewhere;
            return helper.work(task, line);
          },
          {}, budget);
      EXPECT_TRUE(result.policy == expected.policy) << ranks << " ranks, " << threads;
      EXPECT_EQ(result.evaluations, expected.evaluations);
      EXPECT_EQ(result.steps, expected.steps);
      EXPECT_EQ(training.lost(), 0);
      EXPECT_GT(elsewhere, 0);
    }
  }
}

// After each of its tasks in turn: in the first and in later epochs.
TEST_P(TrainingOnRanks, the_tasks_of_a_lost_rank_are_done_by_others) {
  const MultiGraphSettings settings = all_phases(GetParam());
  const TrainedPolicy expected = alone(settings);
  for (int last = 1; last <= 12; last += 2) {
    TrainingRanks training(3, settings);
    std::atomic<int> done{0};
    const TrainedPolicy result =
        training.train([&](int rank, dist::Reader& task, dist::Line& line, TrainingHelper& helper) {
          if (rank == 2 && ++done == last) training.silence(2);
          return helper.work(task, line);
        });
    EXPECT_TRUE(result.policy == expected.policy) << "lost at its task " << last;
    EXPECT_EQ(result.evaluations, expected.evaluations);
    EXPECT_EQ(training.lost(), done >= last ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TrainingOnRanks, ::testing::ValuesIn(general_kinds()),
                         [](const auto& param_info) { return param_info.param; });

TEST(TrainingRanksThatAreWrong, are_lost_and_change_nothing) {
  MultiGraphSettings settings = all_phases("placeto");
  settings.encoder_steps = 0;
  const TrainedPolicy expected = alone(settings);
  using Change = std::function<void(std::string&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"too early", [](std::string& bytes) { bytes.clear(); }},
      {"for a flag", [](std::string& bytes) { bytes[0] = 7; }},
      {"announces", [](std::string& bytes) { std::memset(bytes.data() + 1, 0xff, 8); }},
      {"what an agent keeps", [](std::string& bytes) { bytes[9 + 40] ^= 0x55; }},
      {"too long", [](std::string& bytes) { bytes += "more"; }},
      {"a message", [](std::string& bytes) { bytes.pop_back(); }}};
  for (const auto& [message, change] : changes) {
    TrainingRanks training(2, settings);
    const TrainedPolicy result =
        training.train([&](int, dist::Reader& task, dist::Line& line, TrainingHelper& helper) {
          std::string bytes = helper.work(task, line);
          change(bytes);
          return bytes;
        });
    EXPECT_TRUE(result.policy == expected.policy) << message;
    EXPECT_EQ(training.lost(), 1) << message;
    ASSERT_THAT(training.notes(), SizeIs(1)) << message;
    EXPECT_THAT(training.notes()[0], HasSubstr(message));
  }
}

TEST(TrainingRanksThatHelp, are_told_parameters_once_an_epoch) {
  MultiGraphSettings settings = all_phases("gdp");
  settings.network.width = 32;
  settings.tasks_per_step = 5;
  std::size_t large = 0;
  std::size_t small = 0;
  TrainingRanks training(2, settings);
  const TrainedPolicy result =
      training.train([&](int, dist::Reader& task, dist::Line& line, TrainingHelper& helper) {
        (task.rest().size() > 20'000 ? large : small) += 1;
        return helper.work(task, line);
      });
  EXPECT_GT(result.policy.size(), 20'000U);
  // Three steps of imitation, three of practice with two epochs each.
  EXPECT_LE(large, 3U + 3 * 2);
  EXPECT_GT(large, 0U);
  EXPECT_GT(small, 0U);
}

// By whoever helps, in the middle of a step: that is not taken, and a run that is resumed, with any
// number of ranks, goes on as if it had not been stopped.
TEST_P(TrainingOnRanks, a_stopped_training_is_resumed_by_any_number) {
  const MultiGraphSettings settings = all_phases(GetParam());
  const TrainedPolicy expected = alone(settings);
  for (const int last : {2, 9}) {
    std::atomic<bool> cancelled{false};
    std::atomic<int> done{0};
    Budget budget;
    budget.cancelled = &cancelled;
    std::string state;
    TrainingHooks hooks;
    hooks.save_state = [&](std::string_view bytes) { state = bytes; };
    TrainingRanks first(3, settings);
    const TrainedPolicy stopped = first.train(
        [&](int, dist::Reader& task, dist::Line& line, TrainingHelper& helper) {
          if (++done == last) cancelled = true;
          return helper.work(task, line);
        },
        hooks, budget);
    EXPECT_FALSE(stopped.whole);
    EXPECT_LT(stopped.steps, expected.steps);
    ASSERT_FALSE(state.empty());
    for (const int ranks : {1, 4}) {
      TrainingHooks resumed;
      resumed.resume = state;
      resumed.resume_name = "state";
      TrainingRanks second(ranks, settings);
      const TrainedPolicy result = second.train(plainly, resumed);
      EXPECT_TRUE(result.policy == expected.policy) << last << ", then " << ranks << " ranks";
      EXPECT_EQ(result.evaluations, expected.evaluations);
    }
  }
}

}  // namespace
}  // namespace emplace::learn
