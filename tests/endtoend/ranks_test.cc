// Commands on several ranks, as a person runs them. What becomes of ranks that are killed is in
// bench/dist_faults.py, which ctest runs briefly.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/learned_placers.h"
#include "support/program.h"

namespace emplace {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class RanksCommand : public testing::Program {
 protected:
  RanksCommand() {
    if (run("place zoo:alexnet -c 2xp100 -p heft --ranks 2").err.find("libemplace_mpi") !=
        std::string::npos) {
      without_mpi_ = true;
    }
  }
  void SetUp() override {
    if (without_mpi_) GTEST_SKIP() << "built without MPI";
  }

  bool without_mpi_ = false;
};

constexpr const char* kQuestion = "place zoo:alexnet:batch=64 -c 4xp100 --threads 1 -q";

TEST_F(RanksCommand, under_evaluations_the_answer_depends_on_the_islands_alone) {
  const std::string limit = std::string(kQuestion) + " --evaluations 600 --islands 4";
  for (const std::string ranks : {"1", "2", "4"}) {
    const CommandResult result = run(limit + " --ranks " + ranks + " -o " + ranks + ".json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, IsEmpty());
    EXPECT_EQ(folder_.read(ranks + ".json"), folder_.read("1.json")) << ranks;
  }
}

TEST_F(RanksCommand, that_have_nothing_to_do_are_told_of) {
  const std::string search = "place zoo:alexnet:batch=64 -c 4xp100 --threads 1 --evaluations 600";
  EXPECT_THAT(run(search + " --ranks 3").err, HasSubstr("2 of 3 ranks have nothing to do"));
  EXPECT_THAT(run(search + " --ranks 3 --islands 3").err, Not(HasSubstr("nothing to do")));
  EXPECT_THAT(run(search + " --ranks 3 --islands 2").err, HasSubstr("1 of 3 ranks"));
}

// The checkpoint says how many islands there are, where nobody else does.
TEST_F(RanksCommand, any_number_of_them_goes_on_from_a_checkpoint) {
  const std::string search =
      "place zoo:alexnet:batch=64 -c 4xp100 -q --threads 1 --evaluations 160000";
  const nlohmann::json whole = json_of(search + " --ranks 3 --checkpoint state");
  const nlohmann::json again = json_of(search + " --ranks 2 --checkpoint state --resume");
  EXPECT_EQ(again["step_ns"], whole["step_ns"]);
  EXPECT_EQ(again["evaluations"], whole["evaluations"]);
}

TEST_F(RanksCommand, under_time_the_answer_says_how_many_there_were) {
  const nlohmann::json answer = json_of(std::string(kQuestion) + " --time 1s --ranks 3");
  EXPECT_EQ(answer["ranks"]["started"], 3);
  EXPECT_EQ(answer["ranks"]["lost"], 0);
}

TEST_F(RanksCommand, comparisons_share_their_runs) {
  const std::string what = "compare zoo:alexnet -c 2xp100 -p heuristic -q";
  const nlohmann::json shared = json_of(what + " --ranks 3");
  const nlohmann::json alone = json_of(what);
  ASSERT_EQ(shared["runs"].size(), alone["runs"].size());
  for (std::size_t i = 0; i < alone["runs"].size(); ++i) {
    EXPECT_EQ(shared["runs"][i]["placer"], alone["runs"][i]["placer"]);
    EXPECT_EQ(shared["runs"][i]["step_ns"], alone["runs"][i]["step_ns"]);
  }
}

TEST_F(RanksCommand, follow_the_rules_of_placetos_simulator) {
  const std::string what =
      "compare zoo:alexnet -c 2xk80-placeto --rules placeto -p heuristic,scotch -q";
  const nlohmann::json shared = json_of(what + " --ranks 3");
  const nlohmann::json alone = json_of(what);
  EXPECT_EQ(shared["ranks"]["started"], 3);
  ASSERT_EQ(shared["runs"].size(), alone["runs"].size());
  for (std::size_t i = 0; i < alone["runs"].size(); ++i) {
    EXPECT_EQ(shared["runs"][i]["placer"], alone["runs"][i]["placer"]);
    EXPECT_EQ(shared["runs"][i]["makespan_ns"], alone["runs"][i]["makespan_ns"]);
  }
}

TEST_F(RanksCommand, partitions_and_selections_are_searched_together) {
  const nlohmann::json divided =
      json_of("partition zoo:alexnet -c 2xp100 --evaluations 4 --ranks 2 -q");
  EXPECT_EQ(divided["ranks"]["started"], 2);
  folder_.write("problem.json", R"({"problem": {"name": "example",
    "nodes": {"intervals": [[30, 70], [40, 70]], "costs": [[15], [55, 65]], "usages": [[10], [25, 25]]},
    "edges": {"nodes": [[0, 1]], "costs": [[30, 10]]}, "usage_limit": 50}})");
  const nlohmann::json selected = json_of("select problem.json --time 2s --ranks 2 -q");
  EXPECT_EQ(selected["cost"], 90);
  EXPECT_EQ(selected["proven"], true);
}

constexpr const char* kTraining =
    "train --policy gdp --width 8 --layers 1 --graphs family:ptb:sequence=2,seed=0..2 -c 2xp100 "
    "--imitate anneal --imitate-evaluations 50 --imitation-steps 3 --steps 3 --tasks-per-step 3 "
    "--threads 1 -q";

TEST_F(RanksCommand, a_policy_does_not_depend_on_the_ranks_that_train_it) {
  if (learned_placers().empty()) GTEST_SKIP() << "built without learned placers";
  for (const std::string ranks : {"1", "2", "4"}) {
    const CommandResult result =
        run(kTraining + (" --ranks " + ranks + " --curves c" + ranks + " -o p" + ranks));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, IsEmpty());
    EXPECT_FALSE(folder_.read("p" + ranks).empty());
    EXPECT_TRUE(folder_.read("p" + ranks) == folder_.read("p1")) << ranks;
    const std::string curves = folder_.read("c" + ranks + "/curves.csv");
    EXPECT_EQ(std::count(curves.begin(), curves.end(), '\n'), 1 + 6) << curves;
  }
  const nlohmann::json answer = json_of(std::string(kTraining) + " --ranks 2 -o p");
  EXPECT_EQ(answer["ranks"]["started"], 2);
  EXPECT_EQ(answer["ranks"]["lost"], 0);
}

TEST_F(RanksCommand, a_training_is_resumed_by_any_number_of_ranks) {
  if (learned_placers().empty()) GTEST_SKIP() << "built without learned placers";
  const std::string training = kTraining;
  const nlohmann::json whole = json_of(training + " -o whole");
  const std::int64_t evaluations = whole["evaluations"];
  for (const std::string ranks : {"1", "4"}) {
    const std::string files = " --checkpoint state" + ranks + " -o part" + ranks;
    const nlohmann::json part =
        json_of(training + files + " --ranks 2 --evaluations " + std::to_string(evaluations - 1));
    EXPECT_EQ(part["finished"], false);
    const nlohmann::json rest = json_of(training + files + " --resume --ranks " + ranks);
    EXPECT_EQ(rest["finished"], true);
    EXPECT_EQ(rest["evaluations"], evaluations);
    EXPECT_TRUE(folder_.read("part" + ranks) == folder_.read("whole")) << ranks;
  }
}

TEST_F(RanksCommand, bad_input_of_a_training_is_one_message) {
  if (learned_placers().empty()) GTEST_SKIP() << "built without learned placers";
  for (const std::string wrong : {"--graphs missing.json -c 2xp100", "--graphs zoo:alexnet -c no",
                                  "--graphs zoo:alexnet -c 2xp100 --from missing.policy"}) {
    const CommandResult result = run("train " + wrong + " --ranks 3 -o policy");
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, StartsWith("emplace: "));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(folder_.has("policy"));
  }
}

TEST_F(RanksCommand, bad_input_is_one_message) {
  const CommandResult result = run("place missing.json -c 4xp100 --ranks 3");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, StartsWith("emplace: missing.json"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  expect_refused("place - -c 4xp100 --ranks 2", {"every rank reads the input"});
  expect_refused(std::string(kQuestion) + " --time 1s --islands 3", {"--islands 3"});
  expect_refused("place zoo:alexnet -c 4xp100 --ranks 2 --lost-after 1ms", {"--lost-after 1ms"});
}

#ifdef EMPLACE_LEARN

TEST_F(RanksCommand, learned_placers_answer_as_one_process_does_under_evaluations) {
  for (const std::string placer :
       {"'colocrl(width=8)'", "'colocrl(width=8,samples=5,controllers=3)'",
        "'colocrl(width=8,samples=5,controllers=2,workers=1)'"}) {
    const std::string limit = std::string(kQuestion) + " --evaluations 120 -p " + placer;
    for (const std::string ranks : {"1", "2", "3"}) {
      const CommandResult result = run(limit + " --ranks " + ranks + " -o " + ranks + ".json");
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_THAT(result.err, IsEmpty());
      EXPECT_EQ(folder_.read(ranks + ".json"), folder_.read("1.json")) << ranks << placer;
    }
  }
}

TEST_F(RanksCommand, controllers_learn_on_all_ranks_under_time) {
  const nlohmann::json answer =
      json_of(std::string(kQuestion) +
              " --time 6s --ranks 3 -p 'hdp(width=8,samples=4,controllers=3)' --curves curves");
  EXPECT_EQ(answer["ranks"]["lost"], 0);
  EXPECT_GT(answer["evaluations"], 0);
  EXPECT_THAT(folder_.read("curves/curves.csv"), HasSubstr("round"));
}

TEST_F(RanksCommand, controllers_go_on_with_any_number_of_ranks) {
  const std::string question =
      std::string(kQuestion) + " -p 'colocrl(width=8,samples=5,controllers=3)' --evaluations ";
  const CommandResult whole = run(question + "120 -o whole.json");
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  for (const std::string ranks : {"1", "3"}) {
    const std::string files = " --checkpoint state" + ranks + " -o " + ranks + ".json";
    const CommandResult part = run(question + "60 --ranks 2" + files);
    EXPECT_EQ(part.exit_code, 0) << part.err;
    const CommandResult rest = run(question + "120 --resume --ranks " + ranks + files);
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_EQ(folder_.read(ranks + ".json"), folder_.read("whole.json")) << ranks;
  }
  expect_refused(std::string(kQuestion) +
                     " -p 'colocrl(width=8,samples=5,controllers=2)' --evaluations 120 --resume "
                     "--checkpoint state1",
                 {"state1: a checkpoint of colocrl"});
}

TEST_F(RanksCommand, what_controllers_cannot_do_is_said) {
  const std::string question = std::string(kQuestion) + " --evaluations 20 -p ";
  expect_refused(question + "'hdp(learner=ppo,controllers=2)'", {"expected learner=reinforce"});
  expect_refused(
      "place zoo:alexnet -c local --evaluations 5 --environment measured -p 'colocrl(workers=1)'",
      {"ranks with devices of their own"});
  expect_refused(std::string(kQuestion) + " --environment measured -p colocrl --ranks 2",
                 {"device 'gpu0'", "runs_on", "2 ranks"});
}

#endif

TEST_F(RanksCommand, more_than_a_machine_takes_are_refused) {
  expect_refused("place zoo:alexnet -c 2xp100 -p heft --ranks 100000",
                 {"--ranks 100000", "this machine", "at most"});
}

constexpr const char* kMpirun = "mpirun --allow-run-as-root --oversubscribe --bind-to none ";

TEST_F(RanksCommand, a_rank_that_cannot_read_is_noticed_at_once) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string first = std::string(kQuestion) + " --time 60s";
  std::string second = first;
  second.replace(second.find("zoo:alexnet:batch=64"), 20, "missing.json");
  const CommandResult result = folder_.shell(std::string(kMpirun) + "-n 1 " EMPLACE_BINARY " " +
                                             first + " : -n 1 " EMPLACE_BINARY " " + second);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("emplace: rank 1: missing.json"));
  EXPECT_LT(seconds.count(), 40);
}

// On one machine, as two that have other cluster files under the same name.
TEST_F(RanksCommand, ranks_that_read_different_clusters_are_an_error) {
  const std::string first = "place zoo:alexnet:batch=64 --threads 1 -q --time 60s -c 4xp100";
  for (const std::string& other : {first + "@8GiB", first + " --pin 'features.0=gpu0'"}) {
    const CommandResult result = folder_.shell(std::string(kMpirun) + "-n 1 " EMPLACE_BINARY " " +
                                               first + " : -n 1 " EMPLACE_BINARY " " + other);
    EXPECT_EQ(result.exit_code, 2) << other;
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("reads another input than rank 0"));
  }
}

// A process that mpirun has started starts no others.
TEST_F(RanksCommand, another_number_than_were_started_is_said) {
  const std::string words = " " EMPLACE_BINARY " place zoo:alexnet -c 2xp100 -p heft --ranks ";
  const CommandResult one = folder_.shell(kMpirun + ("-n 1" + words) + "3");
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.err, HasSubstr("--ranks 3: mpirun or srun started this process alone"));
  const CommandResult two = folder_.shell(kMpirun + ("-n 2" + words) + "5");
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_THAT(two.err, HasSubstr("--ranks 5: mpirun or srun started 2"));
  EXPECT_THAT(folder_.shell(kMpirun + ("-n 2" + words) + "2").err, Not(HasSubstr("--ranks")));
}

// Each of them would search, and write, as if it were the only one.
TEST_F(RanksCommand, processes_that_do_not_know_of_each_other_are_refused) {
  const std::string words = " " EMPLACE_BINARY " place zoo:alexnet -c 2xp100 -p heft -o x.json";
  for (const std::string other :
       {"PMI_RANK=1", "PMI_RANK=1 PMI_SIZE=2", "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1",
        "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2"}) {
    const CommandResult result = folder_.shell(other + words);
    EXPECT_EQ(result.exit_code, 2) << other;
    EXPECT_THAT(result.out, IsEmpty()) << other;
    EXPECT_THAT(result.err, IsEmpty()) << other;
    EXPECT_FALSE(folder_.has("x.json")) << other;
  }
  const CommandResult pmi = folder_.shell("PMI_RANK=0 PMI_SIZE=2" + words);
  EXPECT_EQ(pmi.exit_code, 2);
  EXPECT_THAT(pmi.err, HasSubstr("PMI_RANK is set"));
  const CommandResult first =
      folder_.shell("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2" + words);
  EXPECT_EQ(first.exit_code, 2);
  EXPECT_THAT(first.err, HasSubstr("MPI does not connect the 2 processes"));
  EXPECT_FALSE(folder_.has("x.json"));
  EXPECT_EQ(folder_.shell("PMI_RANK=0 PMI_SIZE=1" + words).exit_code, 0);
}

TEST_F(RanksCommand, more_islands_than_evaluations_are_refused) {
  expect_refused("place zoo:alexnet -c 4xp100 --evaluations 10 --islands 100",
                 {"100 islands", "share 10 evaluations; expected 400 or more"});
  expect_refused("partition zoo:alexnet -c 2xp100 --evaluations 10 --islands 100",
                 {"100 islands share 10 evaluations"});
}

TEST_F(RanksCommand, several_clusters_are_refused_once) {
  const CommandResult result =
      folder_.shell(std::string(kMpirun) +
                    "-n 3 " EMPLACE_BINARY
                    " compare zoo:alexnet -c 2xp100 -c 4xp100 --time 1s --report page.html");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("several clusters are compared by one process"));
  const std::size_t said = result.err.find("emplace: ");
  EXPECT_EQ(result.err.find("emplace: ", said + 1), std::string::npos) << result.err;
  EXPECT_FALSE(folder_.has("page.html"));
}

// Rank 0 opens the file anew.
TEST_F(RanksCommand, what_follows_in_a_file_is_behind_the_answer) {
  folder_.shell("{ echo before; " EMPLACE_BINARY
                " place zoo:alexnet -c 2xp100 -p heft --ranks 2 -q; echo after; } > log");
  const std::string log = folder_.read("log");
  EXPECT_THAT(log, StartsWith("before\nalexnet: "));
  EXPECT_THAT(log, ::testing::EndsWith("\nafter\n"));
}

TEST_F(RanksCommand, a_misspelt_word_is_said_once) {
  for (const std::string words :
       {"place zoo:alexnet -c 4xp100 --treads 2", "plase zoo:alexnet -c 4xp100",
        "compare zoo:alexnet -c 4xp100 --lost-after 1ms"}) {
    const CommandResult result =
        folder_.shell(std::string(kMpirun) + "-n 3 " EMPLACE_BINARY " " + words);
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_THAT(result.out, IsEmpty()) << words;
    const std::size_t said = result.err.find("emplace: ");
    ASSERT_NE(said, std::string::npos) << words;
    EXPECT_EQ(result.err.find("emplace: ", said + 1), std::string::npos) << result.err;
  }
}

TEST_F(RanksCommand, nothing_that_fits_is_said_once) {
  const CommandResult result = run("place zoo:gpt2-xl:batch=64 -c 1xp100 --training --ranks 2 -q");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const std::string all = result.out + result.err;
  const std::size_t said = all.find("no placement of 'gpt2-xl");
  ASSERT_NE(said, std::string::npos) << all;
  EXPECT_EQ(all.find("no placement of 'gpt2-xl", said + 1), std::string::npos) << all;
}

TEST_F(RanksCommand, an_interrupted_search_has_an_answer) {
  // Without --foreground it is interrupted twice, and the second time ends it.
  const CommandResult result = folder_.shell("timeout --foreground -s INT 6 " EMPLACE_BINARY " " +
                                             std::string(kQuestion) + " --time 60s --ranks 2");
  EXPECT_THAT(result.out, HasSubstr("step time")) << result.err;
}

TEST_F(RanksCommand, a_search_is_resumed_where_it_was) {
  const std::string limit = std::string(kQuestion) + " --evaluations 600 --islands 3 --json";
  const CommandResult first = run(limit + " --checkpoint state");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  const CommandResult again = run(limit + " --checkpoint state --resume --ranks 2");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["step_ns"],
            nlohmann::json::parse(first.out)["step_ns"]);
  expect_refused(limit + " --checkpoint state --resume --seed 2",
                 {"state: is the checkpoint of auto"});
  expect_refused(
      "place zoo:alexnet:batch=32 -c 4xp100 --evaluations 600 --islands 3 --checkpoint "
      "state --resume",
      {"state: is the checkpoint of another model"});
}

}  // namespace
}  // namespace emplace
