// Checkpoints that somebody has changed under a right checksum: whatever they say, a run that goes
// on from them ends with an error that names the file and the entry, or with an answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "placer/run.h"

#include "placers/all.h"

#include "learn/general/agent.h"
#include "learn/general/multi_graph_trainer.h"
#include "learn/nn/single_thread.h"
#include "support/state_entries.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

using emplace::testing::changes_of;
using emplace::testing::StateChange;
using emplace::testing::StateEntries;
using emplace::testing::StateEntry;

std::shared_ptr<const Problem> chain_with_branches() {
  TimedGraph graph;
  const TensorId first = graph.op("op0", 50, {});
  TensorId at = first;
  for (int i = 1; i < 6; ++i) at = graph.op(fmt::format("op{}", i), 50, {at}, 20'000);
  graph.op("side", 70, {first}, 10'000);
  return compile_timed(graph.build(), gpu_cluster(3));
}

// What a run saves at its end.
std::string saved_by(const std::shared_ptr<const Problem>& problem, const std::string& spec,
                     std::int64_t evaluations, const std::string& resume = {}) {
  PlaceContext context(problem);
  std::string saved;
  context.learning().save = [&](std::string_view bytes) { saved = bytes; };
  context.learning().resume = resume;
  context.learning().resume_name = "run.state";
  Budget budget;
  budget.evaluations = evaluations;
  budget.threads = 1;
  run_placer(all_placers(), context, {.placer = MethodSpec::parse(spec), .seed = 5}, budget);
  return saved;
}

// Values that may be anything: words of random numbers, and priorities.
bool may_be_any(const std::string& name) {
  return name.ends_with("rng") || name.ends_with("_priorities");
}

// Of all entries, but of parameters and what optimizers know of them only the first and the last.
std::vector<StateEntry> entries_to_change(const StateEntries& entries) {
  std::vector<StateEntry> result;
  for (const StateEntry& entry : entries.list) {
    const bool tensor = entry.kind == 'f';
    if (tensor && result.size() > 1 && result.back().kind == 'f' &&
        result[result.size() - 2].kind == 'f') {
      result.back() = entry;
    } else {
      result.push_back(entry);
    }
  }
  return result;
}

template <class GoOn>
void expect_refused_by_name(const std::string& file, const GoOn& go_on) {
  const StateEntries entries(file);
  ASSERT_EQ(entries.bytes(), file);
  int refused = 0;
  const std::vector<StateEntry> changed = entries_to_change(entries);
  for (const StateEntry& entry : changed) {
    for (const StateChange& change : changes_of(entry)) {
      SCOPED_TRACE(entry.name + ": " + change.what);
      const bool odd = change.what.starts_with("odd");
      try {
        go_on(entries.with(change.entry));
        // Fewer are possible: no best yet, no episode yet.
        const bool must_be_refused = change.what == "longer" || change.what == "odd -1";
        EXPECT_FALSE(must_be_refused && entry.kind == 'i' &&
                     !(odd && (may_be_any(entry.name) || entry.name == "optimal_after")));
        EXPECT_FALSE(change.what == "odd nan");
      } catch (const Error& error) {
        ++refused;
        EXPECT_THAT(error.what(), ::testing::HasSubstr("run.state: "));
      }
    }
  }
  EXPECT_GT(refused, 2 * static_cast<int>(changed.size()));
}

class DeceptiveCheckpoint : public ::testing::TestWithParam<std::string> {};

TEST_P(DeceptiveCheckpoint, is_refused_by_name) {
  constexpr std::int64_t kEvaluations = 120;
  const auto problem = chain_with_branches();
  const std::string file = saved_by(problem, GetParam(), kEvaluations);
  ASSERT_FALSE(file.empty());
  expect_refused_by_name(file, [&](const std::string& changed) {
    saved_by(problem, GetParam(), kEvaluations + 60, changed);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Placers, DeceptiveCheckpoint,
    ::testing::Values("placeto(workers=2,rounds=1)", "placeto(workers=2,rounds=1,grouping=learned)",
                      "placeto(policy=shipped,finetune=3)", "gdp(policy=shipped,finetune=2)",
                      "gdp(width=8,sage_width=4,samples=10)", "hdp(width=4,hidden=4,samples=10)",
                      "hdp(width=4,hidden=4,samples=10,controllers=2)", "post(samples=10,refit=50)",
                      "post(samples=10,refit=1000)", "post(learner=ce,samples=10,refit=1000)",
                      "colocrl(width=4,samples=10)", "spotlight(width=4,samples=10)",
                      "mars(width=4,encoder_width=4,layers=1,segment=4,pretrain=3,samples=10)",
                      "mars(policy=shipped,finetune=2)"),
    [](const auto& chosen) {
      std::string name;
      for (const char c : chosen.param)
        name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

std::vector<TrainingTask> chains_to_train_on() {
  std::vector<TrainingTask> tasks;
  for (int i = 0; i < 2; ++i) {
    TrainingTask task;
    task.name = "chain";
    task.context = std::make_shared<PlaceContext>(chain_with_branches());
    task.reference_seconds = 1e-3;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

TEST(DeceptiveTraining, is_refused_by_name) {
  for (const std::string kind : {"placeto", "gdp"}) {
    SCOPED_TRACE(kind);
    const MultiGraphSettings settings{.kind = kind,
                                      .network = {.width = 8, .layers = 1},
                                      .imitation_steps = 0,
                                      .steps = 2,
                                      .tasks_per_step = 1};
    std::vector<std::string> states;
    TrainingHooks hooks;
    hooks.save_state_seconds = 0;
    hooks.save_state = [&](std::string_view bytes) { states.emplace_back(bytes); };
    train_on_graphs(chains_to_train_on(), settings, {}, "a card", {}, Rng(1), hooks);
    // After the first step of practice, with another one to take.
    ASSERT_GE(states.size(), 3U);
    expect_refused_by_name(states[states.size() - 3], [&](const std::string& changed) {
      TrainingHooks resumed;
      resumed.resume = changed;
      resumed.resume_name = "run.state";
      train_on_graphs(chains_to_train_on(), settings, {}, "a card", {}, Rng(1), resumed);
    });
  }
}

}  // namespace
}  // namespace emplace::learn
