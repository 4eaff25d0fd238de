// emplace run, profile, place --measure and --environment measured, as a person uses them. All
// devices share a core: what is executed is right, how fast it is does not matter.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <regex>

#include <fmt/format.h>

#include "support/program.h"
#include "support/shared_core.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

#ifdef EMPLACE_LEARN  // what executes is in the library that links libtorch

constexpr const char* kTiny =
    " zoo:stacked-rnn:batch=2,layers=2,hidden=8,sequence=3,input=8,classes=5 ";

class Execution : public testing::Program {
 protected:
  Execution() {
    folder_.write("one.yaml", cluster(1));
    folder_.write("two.yaml", cluster(2));
  }

  static std::string cluster(int devices, const std::string& more = "",
                             const std::string& link = "") {
    return fmt::format(R"(format: emplace.cluster/1
name: here
devices: [{{name: cpu, kind: cpu, count: {}, runs_on: "cores {}"{}}}]
links: [{{bandwidth: 1GB/s, latency_us: 5, channel: out{}}}]
)",
                       devices, usable_core(), more, link);
  }

  // Sent a signal after so many seconds; killed where that does not end it.
  CommandResult interrupted(const std::string& arguments, int seconds) const {
    return folder_.shell(
        fmt::format("timeout --foreground --preserve-status -k 60 -s INT {} " EMPLACE_BINARY " {}",
                    seconds, arguments));
  }

  std::string split(const std::string& model = kTiny) const {
    const CommandResult placed =
        run("place" + model + "-c two.yaml -p round_robin -q -o split.json");
    EXPECT_EQ(placed.exit_code, 0) << placed.err;
    return "split.json";
  }
};

const std::string kQuick = " --steps 3 --warm-up 1 ";

// Whose tensors are on their way for a minute.
TEST_F(Execution, a_step_that_ends_early_waits_for_no_link) {
  folder_.write("slow.yaml", fmt::format(R"(format: emplace.cluster/1
name: here
devices: [{{name: cpu, kind: cpu, count: 2, runs_on: "cores {}"}}]
links: [{{bandwidth: 1GB/s, latency_us: 60000000, channel: out, throttled: true}}]
)",
                                         usable_core()));
  const std::string run_it = std::string("run") + kTiny + "-c slow.yaml " + split() + kQuick;
  const auto start = std::chrono::steady_clock::now();
  const CommandResult late = run(run_it + "--deadline 1s");
  EXPECT_EQ(late.exit_code, 2);
  EXPECT_THAT(
      std::regex_replace(late.out, std::regex("\\s+"), " "),
      AllOf(HasSubstr("failed: the result of op '"), HasSubstr(" on its way to device 'cpu"),
            HasSubstr("is not there 1000.0 ms after the step began")));
  const CommandResult cancelled = interrupted(run_it, 3);
  EXPECT_EQ(cancelled.exit_code, 2);
  EXPECT_THAT(cancelled.err, HasSubstr("interrupted before a step was timed"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_F(Execution, prints_what_was_measured_and_what_was_predicted) {
  const CommandResult result = run(std::string("run") + kTiny + "-c one.yaml" + kQuick);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"measured ", "half of 3 between", "predicted ", "oracle ", "drift ",
                           "loss ", "in step 4", "peak measured", "cpu0", "op type"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  EXPECT_THAT(result.out, Not(HasSubstr("warning")));
}

TEST_F(Execution, without_a_placement_everything_is_on_one_device) {
  const CommandResult result = run(std::string("run") + kTiny + "-c two.yaml --json" + kQuick);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no placement was given: all on "));
  const Json json = Json::parse(result.out);
  int used = 0;
  for (const Json& device : json["devices"]) used += device["busy_ms"] > 0.0 ? 1 : 0;
  EXPECT_EQ(used, 1) << json["devices"];

  const CommandResult apart =
      run(std::string("run") + kTiny + "-c two.yaml --pin layer.0=cpu0 --pin loss=cpu1" + kQuick);
  ASSERT_EQ(apart.exit_code, 0) << apart.err;
  EXPECT_THAT(apart.err, HasSubstr("on cpu0 and cpu1, as not all may be on one device"));

  const CommandResult ordered =
      run(std::string("run") + kTiny + "-c two.yaml --scheduler pct" + kQuick);
  EXPECT_EQ(ordered.exit_code, 2);
  EXPECT_THAT(ordered.err, HasSubstr("--scheduler pct: orders the ops of a placement"));
}

TEST_F(Execution, has_all_of_it_as_json) {
  const Json json = json_of(std::string("run") + kTiny + "-c two.yaml " + split() + kQuick);
  EXPECT_EQ(json["format"], "emplace.execution/1");
  EXPECT_EQ(json["steps"], 3);
  EXPECT_GT(json["step_ms"], 0.0);
  EXPECT_LE(json["step_ms_quartiles"][0], json["step_ms"]);
  EXPECT_GE(json["step_ms_quartiles"][1], json["step_ms"]);
  EXPECT_NEAR(json["predicted_ratio"].get<double>(),
              json["predicted_ms"].get<double>() / json["step_ms"].get<double>(), 1e-6);
  EXPECT_GT(json["oracle_ms"], 0.0);
  EXPECT_GT(json["drift"], 0.0);
  EXPECT_EQ(json["losses"].size(), 4U);
  ASSERT_EQ(json["devices"].size(), 2U);
  EXPECT_GT(json["devices"][1]["peak_bytes"], 0);
  EXPECT_GT(json["types"].size(), 3U);
  EXPECT_THAT(json["warnings"].dump(), HasSubstr("share core"));
}

TEST_F(Execution, gives_the_same_losses_wherever_ops_are) {
  const std::string options = kQuick + "--seed 5";
  const Json one = json_of(std::string("run") + kTiny + "-c one.yaml" + options);
  const Json two = json_of(std::string("run") + kTiny + "-c two.yaml " + split() + options);
  EXPECT_EQ(one["losses"], two["losses"]);
  const Json fixed =
      json_of(std::string("run") + kTiny + "-c two.yaml split.json --order simulated" + options);
  EXPECT_EQ(one["losses"], fixed["losses"]);
  const Json other = json_of(std::string("run") + kTiny + "-c one.yaml --seed 6" + kQuick);
  EXPECT_NE(one["losses"], other["losses"]);
  const Json wide = json_of(std::string("run") + kTiny + "-c one.yaml --numbers float64" + options);
  EXPECT_NE(one["losses"], wide["losses"]);
  EXPECT_NEAR(one["losses"][3].get<double>(), wide["losses"][3].get<double>(), 1e-4);
}

TEST_F(Execution, writes_both_timelines_into_one_trace) {
  const CommandResult result =
      run(std::string("run") + kTiny + "-c two.yaml " + split() + kQuick + "--trace trace.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("wrote trace.json"));
  const Json trace = Json::parse(folder_.read("trace.json"));
  const std::string text = trace.dump();
  EXPECT_THAT(text, AllOf(HasSubstr("measured"), HasSubstr("predicted"), HasSubstr("cpu1")));
}

TEST_F(Execution, a_divided_model_computes_what_the_whole_one_does) {
  const std::string model = " zoo:stacked-rnn:layers=2,hidden=16,sequence=3,batch=8 ";
  const CommandResult divided = run("partition" + model +
                                    "-c two.yaml --method data-parallel --time 1s -q "
                                    "--graph divided.json.gz --placement where.json");
  ASSERT_EQ(divided.exit_code, 0) << divided.err;
  const Json whole = json_of("run" + model + "-c one.yaml --seed 2" + kQuick);
  const Json parts = json_of("run divided.json.gz where.json -c two.yaml --seed 2" + kQuick);
  ASSERT_EQ(whole["losses"].size(), 4U);
  ASSERT_EQ(parts["losses"].size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const double loss = whole["losses"][i];
    EXPECT_NEAR(parts["losses"][i].get<double>(), loss, 1e-5 * std::abs(loss)) << i;
  }
}

TEST_F(Execution, says_what_cannot_be_executed) {
  const std::string tiny = kTiny;
  expect_refused("run" + tiny + "-c 1xp100", {"device 'gpu0'", "runs_on", "emplace cluster local"});
  folder_.write("far.yaml", R"(format: emplace.cluster/1
name: far
devices: [{name: cpu, kind: cpu, runs_on: "cores 1000"}]
)");
  expect_refused("run" + tiny + "-c far.yaml", {"device 'cpu", "no core 1000", "expected some of"});
  expect_refused("run " EMPLACE_SOURCE_DIR "/examples/gnmt4-b256.json.gz -c one.yaml",
                 {"op '", "expected"});
  expect_refused("run" + tiny + "-c one.yaml --fuse", {"--fuse"});
  expect_refused("run" + tiny + "-c one.yaml --steps 0", {"--steps"});
  expect_refused("run" + tiny + "-c one.yaml --order backwards", {"--order"});
  expect_refused("run" + tiny + "-c one.yaml --trace no/such/folder.json", {"no/such"});
  expect_refused("profile" + tiny + "-c 1xp100 -o profiled.json.gz", {"device 'gpu0'", "runs_on"});
  expect_refused("profile " EMPLACE_SOURCE_DIR
                 "/examples/gnmt4-b256.json.gz -c one.yaml -o profiled.json.gz",
                 {"op '", "expected"});
  expect_refused("profile" + tiny + "-c one.yaml", {"--output"});
  expect_refused("place" + tiny + "-c 2xp100 -p heft --measure 2", {"device 'gpu0'", "runs_on"});
}

TEST_F(Execution, memory_that_runs_out_is_no_success) {
  folder_.write("small.yaml", cluster(1, ", memory: 8KiB"));
  const std::string command = std::string("run") + kTiny + "-c small.yaml --limit-memory" + kQuick;
  const CommandResult result = run(command + "--trace trace.json");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("failed: op '"), HasSubstr("on device 'cpu0'"),
                                HasSubstr("memory runs out")));
  EXPECT_FALSE(folder_.has("trace.json"));
  const CommandResult json = run(command + "--json");
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_THAT(Json::parse(json.out)["failure"], HasSubstr("memory runs out"));
  EXPECT_EQ(run(std::string("run") + kTiny + "-c small.yaml" + kQuick).exit_code, 0)
      << "without the limit";
}

TEST_F(Execution, a_signal_ends_a_run_with_what_was_timed) {
  const CommandResult result =
      interrupted(std::string("run") + kTiny + "-c one.yaml --steps 1000000 --warm-up 0", 5);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("note: interrupted: "));
  EXPECT_THAT(result.out, AllOf(HasSubstr("measured "), Not(HasSubstr("drift"))));
  const CommandResult before =
      interrupted(std::string("run") + kTiny + "-c one.yaml --warm-up 1000000", 5);
  EXPECT_EQ(before.exit_code, 2);
  EXPECT_THAT(before.err, HasSubstr("emplace: interrupted before a step was timed"));
  EXPECT_THAT(before.out, IsEmpty());
}

TEST_F(Execution, a_profile_is_a_graph_and_a_cluster_for_everything_else) {
  const CommandResult result = run(std::string("profile") + kTiny +
                                   "-c two.yaml --phases 2 --steps 2 --warm-up 1 -o p.json.gz");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("measured on"), HasSubstr("between ops"),
                                HasSubstr("GB/s"), HasSubstr("The same work took"),
                                HasSubstr("wrote p.json.gz"), HasSubstr("wrote p.yaml")));
  EXPECT_TRUE(folder_.has("p.json.gz"));
  EXPECT_TRUE(folder_.has("p.yaml"));
  EXPECT_FALSE(folder_.has("p.json.gz.phases"));
  EXPECT_THAT(folder_.read("p.yaml"), AllOf(HasSubstr("gap_us"), HasSubstr("runs_on")));
  ASSERT_EQ(run("place p.json.gz -c p.yaml -p heft -o placed.json").exit_code, 0);
  const Json ran = json_of("run p.json.gz placed.json -c p.yaml" + kQuick);
  EXPECT_GT(ran["predicted_ratio"], 0.0);
  const Json again = json_of(
      "profile p.json.gz -c p.yaml --no-busy --phases 1 --steps 1 -o q.json --cluster-output "
      "other.yaml");
  EXPECT_EQ(again["format"], "emplace.profile/1");
  EXPECT_EQ(again["kinds"][0]["kind"], "cpu");
  EXPECT_TRUE(folder_.has("other.yaml"));
}

TEST_F(Execution, a_throttled_link_is_as_slow_as_it_says) {
  folder_.write("slow.yaml", cluster(2, "", ", throttled: true"));
  const CommandResult result = run(std::string("profile") + kTiny +
                                   "-c slow.yaml --phases 1 --steps 2 --warm-up 1 -o p.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("1.00 GB/s"), HasSubstr("throttled")));
  EXPECT_THAT(folder_.read("p.yaml"), HasSubstr("throttled: true"));
}

TEST_F(Execution, a_profile_that_was_interrupted_goes_on) {
  const std::string profile = std::string("profile") + kTiny +
                              "-c one.yaml --phases 1000 --steps 1 --warm-up 0 -o p.json.gz";
  const CommandResult first = interrupted(profile, 6);
  EXPECT_EQ(first.exit_code, 2);
  EXPECT_THAT(first.err, AllOf(HasSubstr("interrupted: "), HasSubstr("kept in p.json.gz.phases"),
                               HasSubstr("--resume")));
  EXPECT_FALSE(folder_.has("p.json.gz"));
  ASSERT_TRUE(folder_.has("p.json.gz.phases"));
  const std::string kept = folder_.read("p.json.gz.phases");
  ASSERT_GT(std::count(kept.begin(), kept.end(), '\n'), 1);
  expect_refused(
      "profile zoo:rnnlm:batch=2,layers=1,hidden=8,sequence=3,vocabulary=11 "
      "-c one.yaml --phases 1 --steps 1 --warm-up 0 -o p.json.gz --resume",
      {"p.json.gz.phases", "another model"});
  // What the file says is not measured again: here, a first phase with a step of its own.
  const std::size_t header = kept.find('\n') + 1;
  Json phase = Json::parse(kept.substr(header, kept.find('\n', header) - header));
  phase["kinds"][0]["step_ns"] = 987'654'321;
  folder_.write("p.json.gz.phases", kept.substr(0, header) + phase.dump() + "\n");
  const Json resumed =
      json_of(std::string("profile") + kTiny +
              "-c one.yaml --steps 1 --warm-up 0 -o p.json.gz --resume --phases 1");
  EXPECT_EQ(resumed["kinds"][0]["step_ms"], 987.654321);
  EXPECT_TRUE(folder_.has("p.json.gz"));
  EXPECT_TRUE(folder_.has("p.yaml"));
  EXPECT_FALSE(folder_.has("p.json.gz.phases"));
}

// What phases were kept then is measured with fewer steps than what searches propose.
TEST_F(Execution, a_profile_that_is_interrupted_while_it_learns_about_links_goes_on) {
  const std::string profile =
      std::string("profile") + kTiny + "-c two.yaml -o p.json.gz --warm-up 0 ";
  const CommandResult first = interrupted(profile + "--phases 1000 --steps 1", 5);
  EXPECT_EQ(first.exit_code, 2);
  ASSERT_TRUE(folder_.has("p.json.gz.phases"));
  std::string kept = folder_.read("p.json.gz.phases");
  const std::string steps = R"("steps":1,)";
  ASSERT_NE(kept.find(steps), std::string::npos);
  kept.replace(kept.find(steps), steps.size(), R"("steps":100000,)");
  folder_.write("p.json.gz.phases", kept);
  const CommandResult second = interrupted(profile + "--phases 1 --steps 100000 --resume", 5);
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, HasSubstr("interrupted: all phases are done and kept in "
                                    "p.json.gz.phases; the same command with --resume goes on"));
  EXPECT_TRUE(folder_.has("p.json.gz.phases"));
}

TEST_F(Execution, the_fastest_of_the_executed_placements_is_the_answer) {
  const CommandResult result =
      run(std::string("place") + kTiny + "-c two.yaml -p heft --measure 3 -o best.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("executed"), HasSubstr("half between"), HasSubstr("all on cpu0"),
                    HasSubstr("executed placements the fastest")));
  const Json json =
      json_of(std::string("place") + kTiny + "-c two.yaml -p heft --measure 3 -o b.json");
  ASSERT_GE(json["measured"].size(), 2U);
  const Json& best = json["measured"][0];
  for (const Json& other : json["measured"]) {
    EXPECT_LE(best["measured_ms"], other["measured_ms"]);
  }
  if (best["origin"] == "all on cpu0") {
    for (const auto& [op, device] : Json::parse(folder_.read("b.json"))["assignment"].items()) {
      EXPECT_EQ(device, "cpu0") << op;
    }
  }
}

TEST_F(Execution, placers_learn_from_measured_steps) {
  const CommandResult result = run(std::string("place") + kTiny +
                                   "-c two.yaml -p \"post(polish=false)\" --environment measured "
                                   "--evaluations 6 -o learned.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(folder_.has("learned.json"));
  EXPECT_THAT(result.out, HasSubstr("s measured\n"));
  expect_refused(std::string("place") + kTiny + "-c two.yaml -p auto --environment measured",
                 {"--environment measured: auto", "--measure N"});
  expect_refused(std::string("place") + kTiny +
                     "-c two.yaml -p post --environment measured --objective throughput",
                 {"--objective throughput"});
}

// Each measures on a core of its own, where there are two.
TEST_F(Execution, ranks_measure_steps_on_devices_of_their_own) {
  folder_.write("ranks.yaml", fmt::format(R"(format: emplace.cluster/1
name: here
devices: [{{name: cpu, kind: cpu, count: 2, runs_on: ["cores {0}", "cores {1}"]}}]
links: [{{bandwidth: 1GB/s, latency_us: 5, channel: out}}]
)",
                                          usable_core(), last_usable_core()));
  const std::string question = std::string("place") + kTiny + "-c ranks.yaml ";
  const CommandResult simulated = run(question + "-p heft --ranks 2 -q");
  if (simulated.err.find("libemplace_mpi") != std::string::npos) GTEST_SKIP() << "without MPI";
  for (const std::string placer :
       {"post(polish=false)", "colocrl(width=8,samples=3,polish=false,controllers=2)",
        "colocrl(width=8,samples=4,polish=false,workers=1)"}) {
    const CommandResult learned =
        run(question + "-p \"" + placer + "\" --environment measured --ranks 2 --threads 1 " +
            "--evaluations 12 -o learned.json");
    ASSERT_EQ(learned.exit_code, 0) << learned.err;
    EXPECT_THAT(learned.out, HasSubstr("s measured\n")) << placer;
    EXPECT_THAT(learned.err, Not(HasSubstr("lost"))) << placer;
  }
  expect_refused(question + "-p post --environment measured --evaluations 6 --ranks 3",
                 {"device 'cpu0'", "runs_on", "places: 2", "3 ranks"});
}

// What one of them cannot execute on is said, whichever it is.
TEST_F(Execution, ranks_say_where_there_is_no_core) {
  folder_.write("ranks.yaml", fmt::format(R"(format: emplace.cluster/1
devices:
  - {{name: cpu0, kind: cpu, runs_on: ["cores {0}", "cores {0}"]}}
  - {{name: cpu1, kind: cpu, runs_on: ["cores {0}", "cores 1000"]}}
links: [{{bandwidth: 1GB/s, latency_us: 5}}]
)",
                                          usable_core()));
  const std::string question = std::string("place") + kTiny + "-c ranks.yaml -p post ";
  if (run(question + "--evaluations 6 --ranks 2 -q").err.find("libemplace_mpi") !=
      std::string::npos) {
    GTEST_SKIP() << "without MPI";
  }
  expect_refused(question + "--time 60s --environment measured --ranks 2",
                 {"rank 1", "device 'cpu1'", "there is no core 1000"});
}

#endif

}  // namespace
}  // namespace emplace
