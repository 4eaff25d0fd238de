// What goes wrong around the program: files that are made to harm, disks that are full, readers
// that leave, signals. It ends with an exit code of its own and a message, and no answer is lost.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/program.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::kChain;
using ::testing::Not;
using testing::pair_of_devices;
using Json = nlohmann::json;

// What a process has computed so far.
double processor_seconds(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name, in parentheses, may hold anything.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  constexpr int kBefore = 11;
  std::string skipped;
  for (int i = 0; i < kBefore; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double seconds_in(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

struct Interrupted {
  int exit_code = -1;
  double seconds = 0;  // that it computed from Ctrl-C to its end
  std::string err = {};
};

class Hardening : public testing::Program {
 protected:
  Hardening() {
    folder_.write("m.json", kChain);
    folder_.write("c.yaml", pair_of_devices());
  }

  CommandResult shell(const std::string& command) const { return folder_.shell(command); }

  // Ctrl-C after a second of computing. A second by the clock is what the end of it may take;
  // machines that test are busy, so it is a second of computing here.
  Interrupted interrupted(const std::string& arguments) const {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds kPatience{60};
    constexpr std::chrono::milliseconds kPause{20};
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string command = "exec " EMPLACE_BINARY " " + arguments + " > out.txt 2> err.txt";
      if (::chdir(folder_.path("").c_str()) == 0) {
        ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      }
      ::_exit(127);
    }
    Interrupted result;
    int status = 0;
    rusage used{};
    auto deadline = Clock::now() + kPatience;
    while (processor_seconds(child) < 1 && Clock::now() < deadline) {
      std::this_thread::sleep_for(kPause);
    }
    const double before = processor_seconds(child);
    ::kill(child, SIGINT);
    deadline = Clock::now() + kPatience;
    while (::wait4(child, &status, WNOHANG, &used) == 0) {
      if (Clock::now() > deadline) ::kill(child, SIGKILL);
      std::this_thread::sleep_for(kPause);
    }
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    result.seconds = seconds_in(used.ru_utime) + seconds_in(used.ru_stime) - before;
    result.err = folder_.read("err.txt");
    return result;
  }

  bool has_placement(const std::string& name) const {
    return folder_.has(name) && Json::parse(folder_.read(name))["format"] == "emplace.placement/1";
  }
};

TEST_F(Hardening, a_cluster_file_of_one_comma_is_refused) {
  folder_.write("comma.yaml", ",");
  expect_refused("cluster show comma.yaml", {"comma.yaml: "});
  folder_.write("two.yaml", pair_of_devices() + "---\n" + pair_of_devices());
  expect_refused("cluster show two.yaml", {"two.yaml: ", "expected one document"});
}

TEST_F(Hardening, an_error_is_an_error_where_it_cannot_be_printed) {
  EXPECT_EQ(shell(EMPLACE_BINARY " place nofile.json -c c.yaml 2>/dev/full").exit_code, 2);
  EXPECT_EQ(shell(EMPLACE_BINARY " place m.json --no-such 2>/dev/full").exit_code, 2);
}

TEST_F(Hardening, an_answer_is_written_though_nobody_reads_the_messages) {
  const CommandResult full = shell(
      EMPLACE_BINARY " place m.json -c c.yaml -p hill_climb --time 1s -o full.json 2>/dev/full");
  EXPECT_EQ(full.exit_code, 0);
  EXPECT_TRUE(has_placement("full.json"));
  const CommandResult closed =
      shell(EMPLACE_BINARY " place m.json -c c.yaml -p hill_climb --time 1s -o closed.json 2>&-");
  EXPECT_EQ(closed.exit_code, 0);
  EXPECT_TRUE(has_placement("closed.json"));
  // Progress begins after three seconds; its reader is gone by then.
  shell("(" EMPLACE_BINARY
        " place zoo:gnmt-4 -c 4xp100 -p hill_climb --time 4s -o pipe.json 2>&1; :) | true");
  EXPECT_TRUE(has_placement("pipe.json"));
}

TEST_F(Hardening, an_answer_on_standard_output_does_not_depend_on_its_report) {
  const std::string place = EMPLACE_BINARY " place m.json -c c.yaml -p heft -o - ";
  for (const std::string errors : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(shell(place + errors + " > piped.json").exit_code, 0) << errors;
    EXPECT_TRUE(has_placement("piped.json")) << errors;
  }
  EXPECT_EQ(shell(place + "> /dev/full").exit_code, 2) << "the answer itself is lost";
}

TEST_F(Hardening, runs_that_write_one_file_at_the_same_time_leave_a_whole_one) {
  shell(
      "for i in 1 2 3 4 5 6; do " EMPLACE_BINARY
      " place m.json -c c.yaml -p heft -o shared.json --trace shared.trace -q > /dev/null & done; "
      "wait; ls shared.*.tmp-* 2> /dev/null | wc -l > left");
  EXPECT_TRUE(has_placement("shared.json"));
  EXPECT_NO_THROW(Json::parse(folder_.read("shared.trace")));
  EXPECT_EQ(folder_.read("left"), "0\n");
}

TEST_F(Hardening, a_terminal_that_is_closed_ends_a_search_with_its_answer) {
  const CommandResult result =
      shell("timeout --foreground -s HUP 3 " EMPLACE_BINARY
            " place zoo:gnmt-4 -c 4xp100 --time 10m --threads 1 -o hup.json");
  EXPECT_THAT(result.err, HasSubstr("interrupted"));
  EXPECT_TRUE(has_placement("hup.json"));
}

TEST_F(Hardening, nohup_is_respected) {
  const CommandResult result =
      shell("trap '' HUP; " EMPLACE_BINARY
            " place zoo:gnmt-4 -c 4xp100 -p hill_climb --time 4s -o nohup.json & sleep 3; "
            "kill -HUP $!; wait $!");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, Not(HasSubstr("interrupted")));
  EXPECT_TRUE(has_placement("nohup.json"));
}

TEST_F(Hardening, an_output_that_cannot_be_written_is_found_before_the_search) {
  for (const std::string option :
       {"-o /proc/q.json", "--trace /proc/q.json", "-o /no/such/q.json"}) {
    // Found later, it would be found when nobody waits for it any more.
    expect_refused("place m.json -c c.yaml -p hill_climb --time 1h " + option,
                   {"cannot be written"});
  }
}

TEST_F(Hardening, an_output_that_fails_late_does_not_take_the_answer_with_it) {
  const CommandResult result =
      run("place m.json -c c.yaml -p heft -o /dev/full --trace trace.json");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("emplace: /dev/full: cannot be written: No space left"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("step time"), HasSubstr("wrote trace.json"),
                                Not(HasSubstr("wrote /dev/full"))));
  EXPECT_TRUE(folder_.has("trace.json"));
}

TEST_F(Hardening, an_output_replaces_neither_an_input_nor_another_output) {
  folder_.write("p.json", R"({"assignment": {"w": "d0", "a": "d0", "b": "d0"}})");
  const std::string place = "place m.json -c c.yaml -p heft ";
  expect_refused(place + "-o m.json", {"m.json: is an input too"});
  expect_refused(place + "-o ./m.json", {"is an input too"});
  expect_refused(place + "-o c.yaml", {"c.yaml: is an input too"});
  expect_refused(place + "--start p.json -o p.json", {"p.json: is an input too"});
  expect_refused(place + "-o x.json --trace x.json", {"x.json: is the name of two outputs"});
  expect_refused("compare m.json -c c.yaml -p heft --csv m.json", {"is an input too"});
  expect_refused("simulate m.json p.json -c c.yaml --trace p.json", {"is an input too"});
  expect_refused("profile-fit m.json -o m.json", {"is an input too"});
  expect_refused("partition m.json -c c.yaml --graph m.json", {"is an input too"});
  EXPECT_EQ(folder_.read("m.json"), kChain);
  EXPECT_EQ(run(place + "-o /dev/null --trace /dev/null").exit_code, 0);
}

// What placers read, and what learning writes by itself.
TEST_F(Hardening, an_output_replaces_no_policy_checkpoint_or_curves) {
  folder_.write("x.policy", "a policy");
  const std::string spec = "-p 'heft,gdp(policy=./x.policy)' ";
  expect_refused("place m.json -c c.yaml " + spec + "-o x.policy", {"x.policy: is an input too"});
  expect_refused("place m.json -c c.yaml " + spec + "-o p.json --trace x.policy",
                 {"x.policy: is an input too"});
  for (const std::string option : {"--csv", "--report", "-o"}) {
    expect_refused("compare m.json -c c.yaml " + spec + option + " x.policy",
                   {"x.policy: is an input too"});
  }
  EXPECT_EQ(folder_.read("x.policy"), "a policy");
  const std::string anneal = "place m.json -c c.yaml -p anneal --evaluations 9 ";
  expect_refused(anneal + "--checkpoint k -o k", {"k: is the name of two outputs"});
  expect_refused(anneal + "--checkpoint k -o p.json --report ./k", {"is the name of two outputs"});
  EXPECT_FALSE(folder_.has("k"));
  const std::string post = "place m.json -c c.yaml -p post --evaluations 9 ";
  folder_.shell("mkdir curves");
  expect_refused(post + "--curves curves -o curves/curves.csv", {"is the name of two outputs"});
  folder_.shell("cp c.yaml curves/curves.csv");
  expect_refused("place m.json -c curves/curves.csv -p post --evaluations 9 --curves curves/",
                 {"curves.csv: is an input too"});
  EXPECT_EQ(folder_.read("curves/curves.csv"), folder_.read("c.yaml"));
  const std::string train = "train -c 2xp100 --graphs family:ptb:sequence=2,seed=0 ";
  expect_refused(train + "--curves curves -o curves/curves.csv", {"is the name of two outputs"});
  expect_refused(train + "--checkpoint k -o k", {"is the name of two outputs"});
  expect_refused(train + "--checkpoint k -o x --report k", {"is the name of two outputs"});
}

#ifdef EMPLACE_LEARN
TEST_F(Hardening, curves_that_cannot_be_written_are_found_before_the_search) {
  expect_refused("place m.json -c c.yaml -p post --time 1h --curves /proc/x",
                 {"/proc/x: cannot be made"});
}

TEST_F(Hardening, two_runs_do_not_share_a_folder_of_curves) {
  const std::string post = " place zoo:bert-base -c 4xp100 -p post --curves k --time ";
  const CommandResult result =
      shell("(" EMPLACE_BINARY + post + "6s -q > first.txt 2>&1; echo $? > first) & " +
            "for i in $(seq 300); do test -e k/curves.csv.lock && break; sleep 0.1; done; " +
            std::string(EMPLACE_BINARY) + post + "1s; echo $? > second; wait");
  EXPECT_THAT(result.err, HasSubstr("k/curves.csv: another run is using it"));
  EXPECT_EQ(folder_.read("first"), "0\n") << folder_.read("first.txt");
  EXPECT_EQ(folder_.read("second"), "2\n");
  EXPECT_FALSE(folder_.has("k/curves.csv.lock"));
}
#endif

TEST_F(Hardening, names_that_are_not_utf8_or_command_terminals_are_refused) {
  folder_.write("latin1.txt",
                "node1 -- Input0 -- forward_compute_time=0.0, backward_compute_time=0.0, "
                "activation_size=8.0, parameter_size=0.0\n"
                "node\xF6 -- ReLU -- forward_compute_time=1.0, backward_compute_time=1.0, "
                "activation_size=8.0, parameter_size=4.0\n\tnode1 -- node\xF6\n");
  expect_refused("place latin1.txt -c 2xp100", {"latin1.txt: ", "node\\xf6", "is not UTF-8"});
  folder_.write("escape.json", R"({"format": "emplace.graph/1", "tensors": [{"bytes": 4}],
    "ops": [{"name": "a\u001b[31m", "type": "mm", "inputs": [], "outputs": [0]}]})");
  const CommandResult result = run("place escape.json -c 2xp100");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("escape.json: "), HasSubstr("\\x1b[31m"),
                                HasSubstr("control character"), Not(HasSubstr("\x1b"))));
}

TEST_F(Hardening, numbers_that_are_too_large_are_refused_not_clamped) {
  const std::string place = "place m.json -c c.yaml -p random ";
  expect_refused(place + "--seed 18446744073709551616", {"--seed", "from 0 to"});
  expect_refused(place + "--seed 0x10", {"--seed"});
  expect_refused(place + "--evaluations 99999999999999999999",
                 {"--evaluations", "9223372036854775807"});
  expect_refused(place + "--evaluations -1", {"--evaluations"});
  EXPECT_EQ(run(place + "--seed 18446744073709551615 --evaluations 10").exit_code, 0);
}

TEST_F(Hardening, what_is_no_number_is_within_no_range) {
  expect_refused("simulate m.json placement.json -c c.yaml --overlap-slowdown nan",
                 {"--overlap-slowdown", "'nan' is not a number"});
  expect_refused("place m.json -c c.yaml -p random --evaluations 10 --ranks 100000", {"--ranks"});
}

TEST_F(Hardening, numbers_with_commas_are_refused) {
  folder_.write("comma.txt",
                "node1 -- ReLU -- forward_compute_time=1,5, backward_compute_time=1.0, "
                "activation_size=8.0, parameter_size=4.0\n");
  expect_refused("place comma.txt -c 2xp100", {"comma.txt: line 1: node1: '5'", "points"});
}

TEST_F(Hardening, packed_files_that_unpack_without_measure_are_refused) {
  shell("head -c 400M /dev/zero | gzip -1 > bomb.gz");
  expect_refused("place bomb.gz -c 2xp100", {"bomb.gz: holds more than 256 MiB"});
}

TEST_F(Hardening, a_pipe_that_nobody_writes_to_is_given_up) {
  shell("mkfifo silent");
  expect_refused("place silent -c 2xp100", {"silent: ", "nobody wrote to it"});
  const CommandResult slow = shell("mkfifo slow; (sleep 1; cat m.json > slow) & " EMPLACE_BINARY
                                   " place slow -c c.yaml -p heft --json");
  ASSERT_EQ(slow.exit_code, 0) << slow.err;
  EXPECT_EQ(Json::parse(slow.out)["step_ns"], 150000);
}

TEST_F(Hardening, zoo_models_of_any_size_are_refused_at_once) {
  for (const std::string model :
       {"zoo:transformer-xl-2:sequence=16777216", "zoo:mixtral-8x7b:experts=10000"}) {
    expect_refused("info " + model, {"zoo:", "more than 400000 ops"});
  }
}

// What does not end within ten seconds of Ctrl-C is killed, which is exit code 137.
constexpr const char* kCtrlC =
    "timeout --foreground --preserve-status -k 10 -s INT 1 " EMPLACE_BINARY " ";

TEST_F(Hardening, ctrl_c_ends_what_has_no_answer_yet) {
  const CommandResult result =
      shell("mkfifo pipe; (exec sleep 100 > pipe) & " + std::string(kCtrlC) +
            "place pipe -c c.yaml; code=$?; kill %1; exit $code");
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.out, "");
}

// Millions of sets to go through, which is minutes.
TEST_F(Hardening, ctrl_c_ends_what_takes_long_by_its_options) {
  const Interrupted result = interrupted(
      "place zoo:gnmt-2:training=false,sequence=6 -c 2xp100 -p 'dp(ideals=10000000)' --time 10m "
      "-o dp.json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(result.seconds, 1);
  EXPECT_THAT(result.err, HasSubstr("interrupted"));
  EXPECT_TRUE(has_placement("dp.json"));
}

#ifdef EMPLACE_LEARN
// Networks so wide that the first round takes longer than there is.
TEST_F(Hardening, wide_policies_end_in_time_and_at_ctrl_c) {
  for (const std::string placer : {"spotlight", "colocrl"}) {
    const std::string place = "place zoo:gnmt-2 -c 2xp100 -p '" + placer + "(width=4096)' ";
    const CommandResult timed =
        shell("timeout -s KILL 60 " EMPLACE_BINARY " " + place + "--time 1s -o timed.json");
    EXPECT_EQ(timed.exit_code, 0) << timed.err;
    EXPECT_TRUE(has_placement("timed.json"));
    const Interrupted ended = interrupted(place + "--time 10m -o ended.json");
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_LT(ended.seconds, 1) << placer;
    EXPECT_THAT(ended.err, HasSubstr("interrupted"));
    EXPECT_TRUE(has_placement("ended.json"));
    shell("rm timed.json ended.json");
  }
}
#endif

#ifdef EMPLACE_LEARN
TEST_F(Hardening, two_runs_do_not_share_a_checkpoint) {
  const std::string post = " place zoo:bert-base -c 4xp100 -p post --checkpoint k.ckpt --time ";
  const CommandResult result =
      shell("(" EMPLACE_BINARY + post + "8s -q > first.txt 2>&1; echo $? > first) & " +
            "for i in $(seq 300); do test -e k.ckpt.lock && break; sleep 0.1; done; " +
            std::string(EMPLACE_BINARY) + post + "1s; echo $? > second; wait");
  EXPECT_THAT(result.err, HasSubstr("k.ckpt: another run is using it"));
  EXPECT_EQ(folder_.read("first"), "0\n") << folder_.read("first.txt");
  EXPECT_EQ(folder_.read("second"), "2\n");
  EXPECT_FALSE(folder_.has("k.ckpt.lock"));
}
#endif

}  // namespace
}  // namespace emplace
