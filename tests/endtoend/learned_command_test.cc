// Long runs of placers that learn: curves, checkpoints, resuming, interruptions.
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "placers/all.h"

#include "support/command.h"
#include "support/event_reader.h"
#include "support/learned_placers.h"

namespace emplace {
namespace {

using testing::CommandResult;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TemporaryFolder;
using Json = nlohmann::json;

constexpr const char* kProblem = "family:ptb:sequence=6 -c 4xp100 ";

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;

  std::size_t column(const std::string& name) const {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  }
  // All but what a clock says.
  std::vector<std::vector<std::string>> without_clocks() const {
    std::vector<std::vector<std::string>> kept = rows;
    for (auto& row : kept) {
      for (std::size_t i = 0; i < header.size(); ++i) {
        const bool clock = header[i] == "seconds" || header[i] == "policy_seconds" ||
                           header[i] == "learner_seconds" || header[i] == "evaluation_seconds" ||
                           header[i] == "waiting_seconds";
        if (clock) row[i].clear();
      }
    }
    return kept;
  }
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields{""};
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

class LearnedCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (learned_placers().empty()) GTEST_SKIP() << "built without learned placers";
  }

  CommandResult place(const std::string& arguments) const {
    return folder_.emplace("place " + (kProblem + arguments));
  }
  void expect_done(const std::string& arguments) const {
    const CommandResult result = place(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.err;
  }
  void expect_refused(const std::string& arguments,
                      const std::vector<std::string>& messages) const {
    const CommandResult result = place(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, IsEmpty());
    for (const std::string& message : messages) {
      EXPECT_THAT(result.err, HasSubstr(message)) << arguments;
    }
  }

  Table curves(const std::string& folder) const { return table(folder + "/curves.csv"); }
  Table table(const std::string& path) const {
    std::istringstream stream(folder_.read(path));
    Table table;
    std::string line;
    std::getline(stream, line);
    table.header = split(line);
    while (std::getline(stream, line)) table.rows.push_back(split(line));
    return table;
  }

  // The table and the events say the same, round by round.
  void expect_whole(const std::string& folder) const {
    const Table table = curves(folder);
    const auto events = testing::shown_events(folder_.path(folder));
    ASSERT_FALSE(table.rows.empty());
    ASSERT_EQ(events.size(), table.rows.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(table.rows[i].size(), table.header.size());
      EXPECT_EQ(table.rows[i][table.column("round")], std::to_string(i + 1));
      EXPECT_EQ(table.rows[i][table.column("evaluations")], std::to_string(events[i].step));
      const std::string& entropy = table.rows[i][table.column("entropy")];
      EXPECT_EQ(entropy.empty(), !events[i].scalars.contains("policy/entropy"));
      if (!entropy.empty()) {
        EXPECT_FLOAT_EQ(std::stof(entropy), events[i].scalars.at("policy/entropy"));
      }
      EXPECT_FLOAT_EQ(std::stof(table.rows[i][table.column("best_seconds")]),
                      events[i].scalars.at("step_time/best"));
    }
  }

  TemporaryFolder folder_;
};

// With small networks, and rounds short enough for several of them in what these tests evaluate.
std::string small(const MethodInfo& info) {
  const std::map<std::string, std::string> sizes{
      {"width", "8"},   {"hidden", "8"}, {"groups", "12"},   {"encoder_width", "8"}, {"units", "6"},
      {"workers", "2"}, {"refit", "40"}, {"pretrain", "20"}, {"samples", "10"}};
  std::string options;
  for (const OptionInfo& option : info.options) {
    const auto size = sizes.find(option.name);
    if (size != sizes.end()) options += "," + size->first + "=" + size->second;
  }
  return options.empty() ? info.key : info.key + "(" + options.substr(1) + ")";
}

std::vector<std::string> learned_keys() {
  std::vector<std::string> keys;
  for (const MethodInfo* info : learned_placers()) keys.push_back(info->key);
  return keys;
}

class ResumedRun : public LearnedCommand, public ::testing::WithParamInterface<std::string> {};

// In two parts, of which the first ends in the middle of a batch: every number of every round is
// the same as in one.
TEST_P(ResumedRun, is_the_one_that_was_never_interrupted) {
  const std::string run = "--seed 3 -p '" + small(all_placers().info(GetParam())) + "' ";
  expect_done(run + "--evaluations 120 -o whole --curves a");
  expect_done(run + "--evaluations 75 --threads 1 --checkpoint state --curves b");
  expect_done(run + "--evaluations 120 --resume --checkpoint state -o parts --curves b");
  EXPECT_EQ(folder_.read("whole"), folder_.read("parts"));
  EXPECT_EQ(curves("a").without_clocks(), curves("b").without_clocks());
  expect_whole("a");
  expect_whole("b");
  const Table table = curves("a");
  EXPECT_EQ(table.rows.back()[table.column("evaluations")], "120");
  EXPECT_GE(table.rows.size(), 6) << "most of them with learning";
}

INSTANTIATE_TEST_SUITE_P(Learned, ResumedRun, ::testing::ValuesIn(learned_keys()),
                         [](const auto& param_info) { return param_info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ResumedRun);  // built without learned placers

TEST_F(LearnedCommand, a_run_that_is_done_is_not_run_again) {
  const std::string run = "-p post --evaluations 60 --checkpoint state -o placed.json ";
  expect_done(run);
  const std::string placed = folder_.read("placed.json");
  expect_done(run + "--resume");
  EXPECT_EQ(folder_.read("placed.json"), placed);
  expect_refused(run + "--resume --seed 9", {"state: a checkpoint", "another seed"});
}

TEST_F(LearnedCommand, a_checkpoint_is_not_overwritten_by_another_run) {
  expect_done("-p post --evaluations 40 --checkpoint state");
  const std::string state = folder_.read("state");
  expect_refused("-p post --evaluations 40 --checkpoint state",
                 {"checkpoint state: exists", "resume it"});
  EXPECT_EQ(folder_.read("state"), state);
}

TEST_F(LearnedCommand, bad_checkpoints_are_refused) {
  expect_done("-p post --evaluations 40 --checkpoint state");
  const std::string state = folder_.read("state");
  const std::string run = "-p post --evaluations 60 --resume --checkpoint ";
  expect_refused(run + "none", {"none", "cannot be opened"});
  folder_.write("empty", "");
  expect_refused(run + "empty", {"empty: is empty"});
  folder_.write("text", "all is well\n");
  expect_refused(run + "text", {"text: not a checkpoint"});
  folder_.write("short", state.substr(0, state.size() / 2));
  expect_refused(run + "short", {"short", "damaged"});
  std::string damaged = state;
  damaged[damaged.size() / 2] ^= 1;
  folder_.write("damaged", damaged);
  expect_refused(run + "damaged", {"damaged: the checkpoint is damaged"});
  EXPECT_EQ(folder_.read("damaged"), damaged) << "what cannot be read is left as it is";
}

TEST_F(LearnedCommand, foreign_checkpoints_are_refused) {
  expect_done("-p post --evaluations 40 --checkpoint state");
  const std::string run = " -p post --evaluations 60 --resume --checkpoint state";
  for (const std::string problem :
       {"family:ptb:sequence=7 -c 4xp100", "family:ptb:sequence=6 -c 2xp100",
        "family:ptb:sequence=6 -c 4xv100",
        "family:ptb:sequence=6 -c 4xp100 --objective throughput"}) {
    const CommandResult result = folder_.emplace("place " + problem + run);
    EXPECT_EQ(result.exit_code, 2) << problem;
    EXPECT_THAT(result.err, HasSubstr("state: a checkpoint of post")) << problem;
  }
  expect_refused("-p 'post(learner=pg)' --evaluations 60 --resume --checkpoint state", {"state"});
  for (const std::string options : {"groups=7", "epochs=3", "lr=0.5"}) {
    expect_refused("-p 'post(" + options + ")' --evaluations 60 --resume --checkpoint state",
                   {"state: a checkpoint of post; expected one of post(" + options + ")"});
  }
  for (const MethodInfo* info : learned_placers()) {
    if (info->key == "post") continue;
    expect_refused("-p " + info->key + " --evaluations 60 --resume --checkpoint state",
                   {"state: a checkpoint of post", info->key});
  }
}

TEST_F(LearnedCommand, options_without_use_are_refused) {
  expect_refused("-p heft --checkpoint state", {"checkpoint state", "'heft'"});
  expect_refused("-p heft --device cpu", {"device cpu", "placers that learn"});
  expect_refused("-p auto --curves curves", {"curves curves", "'auto'"});
  expect_refused("-p post,'post(groups=9)' --checkpoint state", {"checkpoint state", "one run"});
  const CommandResult several = folder_.emplace(
      "place family:ptb:sequence=6 -c 2xa100+cpu --use-cpu --devices 2 -p post --checkpoint state");
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_THAT(several.err, HasSubstr("checkpoint state is for one run: every set of devices"));
  expect_refused("-p post --resume", {"--checkpoint"});
  expect_refused("-p post --checkpoint state --checkpoint-every often", {"often"});
  expect_refused("-p post --checkpoint none/state", {"none/state", "no folder"});
  expect_refused("-p post --checkpoint .", {"checkpoint .: is a directory"});
  expect_refused("-p heft,post --checkpoint .", {"checkpoint .: is a directory"});
  expect_refused("-p post --checkpoint /proc/state", {"/proc/state: cannot be written"});
  expect_refused("-p post --curves none/curves", {"none/curves", "no folder"});
  expect_refused("-p post --device gpu", {"'gpu'", "expected cpu"});
  expect_refused("-p post --device cuda:99", {"cuda:99", "no such GPU"});
  EXPECT_EQ(folder_.num_files(), 0);
}

// Beside placers that do not learn, which would cover up for an error of its own.
TEST_F(LearnedCommand, a_checkpoint_may_be_that_of_one_of_several_runs) {
  const std::string run = "-p heft,post --evaluations 40 --checkpoint state ";
  expect_done(run);
  ASSERT_TRUE(folder_.has("state"));
  expect_refused(run, {"checkpoint state: exists", "resume it"});
  expect_done(run + "--resume");
  expect_refused(run + "--resume --seed 9", {"state: a checkpoint", "another seed"});
}

TEST_F(LearnedCommand, place_keeps_curves_of_several_runs_apart) {
  expect_done(
      "-p heft,'post(lr=1e-01)','post(lr=1e01)',post,post "
      "--evaluations 60 --curves curves/");
  for (const std::string run : {"post-lr=1e-01-1", "post-lr=1e01-1", "post-1", "post-1.2"}) {
    expect_whole("curves/" + run);
  }
  expect_done("-p heft,post --evaluations 60 --curves alone/");
  expect_whole("alone");
}

TEST_F(LearnedCommand, compare_keeps_curves_apart) {
  const CommandResult result = folder_.emplace(
      std::string("compare ") + kProblem +
      "-p heft,post,'post(learner=ce)' --seeds 2 --evaluations 40 --curves curves --device cpu");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const std::string run : {"post-1", "post-2", "post-learner=ce-1", "post-learner=ce-2"}) {
    expect_whole("curves/" + run);
  }
}

TEST_F(LearnedCommand, ctrl_c_leaves_the_best_placement_and_a_checkpoint) {
  const std::string run = std::string(EMPLACE_BINARY) + " place " + kProblem +
                          "-p post --checkpoint state --curves curves -o best.json ";
  const CommandResult stopped = folder_.shell("timeout --foreground --preserve-status -s INT 4 " +
                                              run + "--time 100s --checkpoint-every 1h");
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("interrupted"));
  ASSERT_TRUE(folder_.has("state"));
  const Table before = curves("curves");
  const auto step = [&] { return Json::parse(folder_.read("best.json"))["predicted"]["step_ns"]; };
  const Json found = step();

  // Enough for a round also where libtorch is slow to load.
  const CommandResult resumed = folder_.shell(run + "--time 5s --resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_LE(step(), found);
  expect_whole("curves");
  const Table after = curves("curves");
  ASSERT_GT(after.rows.size(), before.rows.size());
  EXPECT_THAT(std::vector(after.rows.begin(),
                          after.rows.begin() + static_cast<std::ptrdiff_t>(before.rows.size())),
              ElementsAreArray(before.rows))
      << "the checkpoint is of the last round";
}

// Nothing is half written, whenever it happens, and rounds after the checkpoint are done again.
TEST_F(LearnedCommand, a_killed_run_can_be_resumed) {
  const std::string run = std::string(EMPLACE_BINARY) + " place " + kProblem +
                          "-p post --checkpoint state --curves curves ";
  folder_.shell("timeout -s KILL 4 " + run + "--time 100s --checkpoint-every 300ms");
  ASSERT_TRUE(folder_.has("state"));
  const CommandResult resumed = folder_.shell(run + "--time 1s --resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_whole("curves");
}

TEST_F(LearnedCommand, learns_under_the_rules_of_placetos_simulator) {
  const std::string model = "family:ptb:sequence=6 ";
  const std::string rules = " -c 2xk80-placeto --rules placeto --json";
  const CommandResult placed = folder_.emplace(
      "place " + model + "-p \"placeto(workers=2)\" --evaluations 300 -o p.json" + rules);
  ASSERT_EQ(placed.exit_code, 0) << placed.err;
  const CommandResult simulated = folder_.emplace("simulate " + model + "p.json" + rules);
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  const Json found = Json::parse(placed.out);
  const Json checked = Json::parse(simulated.out);
  EXPECT_EQ(found.at("format"), "emplace.placeto/1");
  EXPECT_EQ(found.at("makespan_ns"), checked.at("makespan_ns"));
  EXPECT_EQ(found.at("devices"), checked.at("devices"));

  const std::string place = "place " + model + "-c 2xk80-placeto --rules placeto ";
  for (const auto& [more, expected] :
       {std::pair{"-p anneal", "anneal looks into the program's own simulator"},
        std::pair{"-p post --scheduler pct", "--scheduler"},
        std::pair{"-p post --objective throughput", "--objective latency"},
        std::pair{"-p post --trace t.json", "--trace"},
        std::pair{"-p post --measure 2", "--measure"},
        std::pair{"-p \"post(polish=true)\"", "polish=true searches by the simulator"},
        std::pair{"-p \"post(warm_start=auto)\"", "warm_start=auto searches"}}) {
    const CommandResult refused = folder_.emplace(place + more);
    EXPECT_EQ(refused.exit_code, 2) << more;
    EXPECT_THAT(refused.err, HasSubstr(expected)) << more;
  }
}

TEST_F(LearnedCommand, compares_under_the_rules_of_placetos_simulator) {
  const std::string model = "family:ptb:sequence=6 ";
  const std::string rules = " -c 2xk80-placeto --rules placeto ";
  const std::string compared = "compare " + model + rules +
                               "-p \"placeto(workers=2),post,single,expert,scotch\" "
                               "--evaluations 100 --seeds 2 ";
  const CommandResult result = folder_.emplace(compared + "--json -o best.json --csv runs.csv");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json found = Json::parse(result.out);
  EXPECT_EQ(found.at("format"), "emplace.placeto-comparison/1");
  EXPECT_EQ(found.at("rules"), "placeto");
  ASSERT_EQ(found.at("runs").size(), 8U);
  ASSERT_EQ(found.at("placers").size(), 5U);
  EXPECT_GT(found["placers"][0].at("mean_makespan_ns"), 0);
  for (std::size_t i = 1; i < found["runs"].size(); ++i) {
    EXPECT_GE(found["runs"][i].at("makespan_ns"), found["runs"][i - 1].at("makespan_ns"));
  }
  const CommandResult simulated =
      folder_.emplace("simulate " + model + "best.json" + rules + "--json");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  const Json checked = Json::parse(simulated.out);
  EXPECT_EQ(found["runs"][0].at("makespan_ns"), checked.at("makespan_ns"));
  EXPECT_EQ(found["runs"][0].at("devices"), checked.at("devices"));
  const Table csv = table("runs.csv");
  EXPECT_EQ(csv.rows.size(), 8U);
  EXPECT_LT(csv.column("makespan_ns"), csv.header.size());
  EXPECT_EQ(csv.column("ratio_to_bound"), csv.header.size());

  const CommandResult text = folder_.emplace(compared);
  EXPECT_THAT(text.out, HasSubstr("by Placeto's simulator"));
  EXPECT_THAT(text.out, HasSubstr("mean makespan"));
}

TEST_F(LearnedCommand, compares_under_them_nothing_that_they_have_no_word_for) {
  const std::string compare = "compare family:ptb:sequence=6 --rules placeto ";
  for (const auto& [more, expected] :
       {std::pair{"-p heft,anneal", "anneal looks into the program's own simulator"},
        std::pair{"-p post --schedulers pct", "--scheduler"},
        std::pair{"-p post --objective throughput", "--objective latency"},
        std::pair{"-p post --report page.html", "--report"},
        std::pair{"-p post -c 4xk80-placeto", "expected one --cluster"}}) {
    const CommandResult refused = folder_.emplace(compare + "-c 2xk80-placeto " + more);
    EXPECT_EQ(refused.exit_code, 2) << more;
    EXPECT_THAT(refused.err, HasSubstr(expected)) << more;
  }
}

TEST_F(LearnedCommand, progress_tells_what_is_learned) {
  const CommandResult result = place("-p post --time 4s");
  EXPECT_EQ(result.exit_code, 0);
  for (const std::string part : {"best ", "mean ", "entropy ", "/s"}) {
    EXPECT_THAT(result.err, HasSubstr(part));
  }
}

}  // namespace
}  // namespace emplace
