// Runs that are kept, and going on from them.
#include "reproduce/jobs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "io/file.h"
#include "reproduce/kernels.h"
#include "support/error_text.h"
#include "support/timed_graph.h"

namespace emplace::bench {
namespace {

const std::string kModel = "RNNLM on 4 of today";

std::string results_file() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = testing::TempDir() + "emplace_jobs_" + info->name() + ".jsonl";
  std::filesystem::remove(path);
  return path;
}

// A few ops in the model's place.
std::map<std::string, Stage> small_stages() {
  TimedGraph graph;
  TensorId last = graph.op("op0", 5, {});
  for (int i = 1; i < 8; ++i) last = graph.op("op" + std::to_string(i), 1 + i % 3, {last});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  return {{kModel, {std::make_shared<const Simulator>(problem), 20'000}}};
}

LearningRun run_of(Nanoseconds step) {
  LearningRun run;
  run.step = step;
  return run;
}

Entrants entrants() {
  return {{kModel, {"single", "random", "hill_climb"}}};
}

TEST(Jobs, are_one_a_seed_and_one_in_all_without_chance) {
  const RunStore none("");
  const std::vector<Job> jobs = missing_jobs(entrants(), 3, 50, none);
  std::map<std::string, std::vector<std::uint64_t>> seeds;
  for (const Job& job : jobs) {
    EXPECT_EQ(job.key.evaluations, 50);
    seeds[job.key.placer].push_back(job.key.seed);
  }
  EXPECT_EQ(seeds["single"], (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(seeds["random"], (std::vector<std::uint64_t>{1, 2, 3}));
  // The first seed of all comes before the second of any.
  EXPECT_EQ(jobs[2].key.seed, 1U);
  EXPECT_EQ(jobs[3].key.seed, 2U);
}

TEST(Jobs, go_on_from_the_file_and_find_what_they_would_have_found) {
  const std::string path = results_file();
  const std::map<std::string, Stage> stages = small_stages();
  RunStore whole("");
  run_jobs(missing_jobs(entrants(), 2, 50, whole), stages, 1, whole);
  {
    RunStore store(path);
    std::vector<Job> some = missing_jobs(entrants(), 2, 50, store);
    ASSERT_EQ(some.size(), 5U);
    some.resize(2);
    run_jobs(some, stages, 1, store);
  }
  RunStore store(path);
  const std::vector<Job> rest = missing_jobs(entrants(), 2, 50, store);
  ASSERT_EQ(rest.size(), 3U);
  run_jobs(rest, stages, 1, store);
  EXPECT_TRUE(missing_jobs(entrants(), 2, 50, store).empty());
  // Other budgets are other runs.
  EXPECT_EQ(missing_jobs(entrants(), 2, 60, store).size(), 5U);
  const RunStore read_again(path);
  for (const Job& job : missing_jobs(entrants(), 2, 50, RunStore(""))) {
    const LearningRun* kept = read_again.find(job.key);
    ASSERT_NE(kept, nullptr) << job.key.placer;
    const LearningRun* expected = whole.find(job.key);
    EXPECT_EQ(kept->step, expected->step) << job.key.placer;
    EXPECT_EQ(kept->fits, expected->fits);
    EXPECT_EQ(kept->evaluations, expected->evaluations);
    ASSERT_EQ(kept->history.size(), expected->history.size());
    for (std::size_t i = 0; i < kept->history.size(); ++i) {
      EXPECT_EQ(kept->history[i].step, expected->history[i].step);
      EXPECT_EQ(kept->history[i].evaluations, expected->history[i].evaluations);
    }
  }
}

TEST(Jobs, lose_no_more_than_the_line_that_was_being_written) {
  const std::string path = results_file();
  const RunKey first{"model", "random", 1, 10};
  const RunKey second{"model", "random", 2, 10};
  {
    RunStore store(path);
    LearningRun whole = run_of(7);
    whole.history = {{3, 0.5, 1.5, 7, true}};
    store.add(first, whole);
    store.add(second, run_of(8));
  }
  const std::string text = read_file(path);
  write_file(path, text.substr(0, text.size() - 20));
  {
    RunStore store(path);
    ASSERT_NE(store.find(first), nullptr);
    EXPECT_EQ(store.find(first)->step, 7);
    EXPECT_EQ(store.find(first)->history.at(0).measured_seconds, 1.5);
    EXPECT_EQ(store.find(second), nullptr);
    store.add(second, run_of(9));
  }
  EXPECT_EQ(RunStore(path).find(second)->step, 9);
}

TEST(Jobs, are_kept_with_the_code_that_they_ran_with) {
  const std::string path = results_file();
  const RunKey first{"model", "random", 1, 10};
  const RunKey second{"model", "random", 2, 10};
  RunStore(path, "0a1b2c3").add(first, run_of(7));
  RunStore(path, "3c2b1a0").add(second, run_of(8));
  const RunStore store(path, "today");
  EXPECT_EQ(store.find(first)->code, "0a1b2c3");
  EXPECT_EQ(store.find(second)->code, "3c2b1a0");
}

TEST(Jobs, of_two_processes_go_into_one_file) {
  const std::string path = results_file();
  RunStore one(path, "one");
  RunStore other(path, "other");
  const RunKey first{"model", "random", 1, 10};
  const RunKey second{"model", "random", 2, 10};
  const RunKey third{"model", "random", 3, 10};
  one.add(first, run_of(7));
  other.add(second, run_of(8));
  EXPECT_EQ(one.find(second), nullptr);
  one.refresh();
  EXPECT_EQ(one.find(second)->step, 8);
  one.add(third, run_of(9));
  other.add(first, run_of(7));  // which the first already has
  EXPECT_EQ(other.find(third)->step, 9);
  EXPECT_EQ(other.find(first)->code, "one");
  const std::string text = read_file(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  const RunStore both(path);
  for (const RunKey& key : {first, second, third}) EXPECT_NE(both.find(key), nullptr);
}

TEST(Jobs, that_another_process_has_done_are_not_done_again) {
  const std::string path = results_file();
  const std::map<std::string, Stage> stages = small_stages();
  RunStore one(path, "one");
  RunStore other(path, "other");
  const std::vector<Job> jobs = missing_jobs(entrants(), 2, 50, other);
  run_jobs(jobs, stages, 1, one);
  run_jobs(jobs, stages, 1, other);
  for (const Job& job : jobs) EXPECT_EQ(other.find(job.key)->code, "one");
}

// Somebody who looks at what is there must not take the file from under a run that lasts hours.
TEST(Jobs, leave_the_file_alone_until_there_is_something_to_add) {
  const std::string path = results_file();
  { const RunStore none(path); }
  EXPECT_FALSE(std::filesystem::exists(path));
  const RunKey first{"model", "random", 1, 10};
  const RunKey second{"model", "random", 2, 10};
  RunStore running(path);
  running.add(first, run_of(7));
  const std::string half = read_file(path) + R"({"workload":"mod)";
  write_file(path, half);
  EXPECT_NE(RunStore(path).find(first), nullptr);
  EXPECT_EQ(read_file(path), half);
  running.add(second, run_of(8));
  EXPECT_EQ(RunStore(path).find(second)->step, 8);
}

TEST(Jobs, are_kept_with_the_kernels_that_they_ran_on) {
  const std::string path = results_file();
  const RunKey first{"model", "random", 1, 10};
  const RunKey second{"model", "random", 2, 10};
  RunStore(path, "0a1b2c3", "Haswell/avx2").add(first, run_of(7));
  RunStore(path, "0a1b2c3").add(second, run_of(8));
  const RunStore store(path);
  EXPECT_EQ(store.find(first)->origin(), "0a1b2c3 (Haswell/avx2)");
  EXPECT_EQ(store.find(second)->origin(), "0a1b2c3");
}

TEST(Kernels, are_the_same_on_all_processors_unless_somebody_asks_for_others) {
  if (__builtin_cpu_supports("avx2") == 0) GTEST_SKIP() << "they are not for this processor";
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("ATEN_CPU_CAPABILITY");
  EXPECT_EQ(pin_kernels(), "Haswell/avx2");
  EXPECT_STREQ(std::getenv("OPENBLAS_CORETYPE"), "Haswell");
  EXPECT_STREQ(std::getenv("ATEN_CPU_CAPABILITY"), "avx2");
  setenv("ATEN_CPU_CAPABILITY", "default", /*overwrite=*/1);
  EXPECT_EQ(pin_kernels(), "Haswell/default");
}

TEST(Jobs, refuse_a_file_of_something_else) {
  const std::string path = results_file();
  write_file(path, "a,b\n1,2\n");
  EXPECT_NE(error_text([&] { RunStore store(path); }).find(path + ": is not a file of results"),
            std::string::npos);
  EXPECT_EQ(read_file(path), "a,b\n1,2\n");
}

}  // namespace
}  // namespace emplace::bench
