// What programs and researchers take from the command line: JSON that says what it is, tables over
// seeds, many placements at once, external placers.
#include <algorithm>
#include <sstream>

#include "support/needed_options.h"
#include "support/program.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class ResearchCommand : public testing::Program {
 protected:
  ResearchCommand() {
    folder_.write("model.json", testing::kChain);
    folder_.write("pair.yaml", testing::pair_of_devices());
    folder_.write("p.json", R"({"assignment": {"w": "d0", "a": "d0", "b": "d1"}})");
  }
};

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST_F(ResearchCommand, every_object_says_what_it_is_and_where_it_comes_from) {
  const std::string version = run("--version").out;
  const std::vector<std::pair<std::string, std::string>> commands{
      {"place model.json -c pair.yaml --evaluations 20 --threads 1", "emplace.answer/1"},
      {"simulate model.json p.json -c pair.yaml", "emplace.answer/1"},
      {"compare model.json -c pair.yaml -p heft", "emplace.comparison/1"},
      {"list", "emplace.methods/1"},
      {"list heft", "emplace.method/1"},
      {"cluster list", "emplace.kinds/1"},
      {"info zoo:alexnet", "emplace.info/1"},
      {"export model.json p.json -c pair.yaml -f trace -o t.json", "emplace.export/1"}};
  for (const auto& [command, format] : commands) {
    const Json json = json_of(command);
    EXPECT_EQ(json["format"], format) << command;
    EXPECT_THAT(version, HasSubstr(json["version"].get<std::string>())) << command;
    if (command.find("model.json") != std::string::npos) {
      EXPECT_EQ(json["model"], "model.json") << command;
    }
  }
  const Json placed = json_of(commands[0].first);
  EXPECT_EQ(placed["graph"], "chain");
  EXPECT_EQ(placed["cluster"], "pair");
  EXPECT_EQ(placed["objective"], "latency");
  EXPECT_EQ(placed["budget"], (Json{{"seconds", nullptr}, {"evaluations", 20}, {"threads", 1}}));
  EXPECT_EQ(json_of("place model.json -c pair.yaml -p heft")["budget"]["seconds"], 10.0);
}

TEST_F(ResearchCommand, says_in_the_same_way_that_nothing_fits) {
  folder_.write("small.yaml",
                testing::pair_of_devices("bandwidth: 7.6GB/s", "count: 2, memory: 300KB"));
  for (const std::string command : {"place", "compare"}) {
    const CommandResult result = run(command + " model.json -c small.yaml --json");
    EXPECT_EQ(result.exit_code, 1);
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["fits"], false);
    EXPECT_EQ(json["model"], "model.json");
    EXPECT_FALSE(json["reason"].get<std::string>().empty());
  }
}

TEST_F(ResearchCommand, cluster_show_prints_a_file_as_json_that_reads_back) {
  folder_.write("pair.json", run("cluster show pair.yaml --json").out);
  EXPECT_EQ(Json::parse(folder_.read("pair.json"))["format"], "emplace.cluster/1");
  EXPECT_EQ(run("cluster show pair.json").out, run("cluster show pair.yaml").out);
  folder_.write("p100.json", run("cluster show 4xp100 --json").out);
  EXPECT_EQ(run("cluster show p100.json").out, run("cluster show 4xp100").out);
}

TEST_F(ResearchCommand, export_says_what_it_wrote_only_where_that_is_a_file) {
  const CommandResult result = run("export model.json -f graph --json");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--output"));
}

TEST_F(ResearchCommand, compare_tells_means_and_intervals_over_seeds) {
  const std::string arguments = "compare model.json -c pair.yaml -p random,heft --seeds 4 ";
  const CommandResult result = run(arguments + "--csv runs.csv");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("mean step time"), HasSubstr("95 %"),
                                HasSubstr("Student's t"), Not(HasSubstr("seed"))));
  EXPECT_THAT(run(arguments + "--each-seed").out, HasSubstr("seed"));
  const std::string csv = folder_.read("runs.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 4 + 1);
  EXPECT_THAT(csv, AllOf(HasSubstr("version,model,graph,cluster,objective,budget_seconds"),
                         HasSubstr(",model.json,chain,pair,latency,10.0,,")));
  const Json json = json_of(arguments);
  ASSERT_EQ(json["placers"].size(), 2);
  EXPECT_EQ(json["runs"].size(), 5);
  const Json& random = json["placers"][json["placers"][0]["placer"] == "random" ? 0 : 1];
  EXPECT_EQ(random["runs"], 4);
  EXPECT_LE(random["interval_step_ns"][0], random["mean_step_ns"]);
  EXPECT_GE(random["interval_step_ns"][1], random["mean_step_ns"]);
  EXPECT_LE(random["best_step_ns"], random["mean_step_ns"]);
}

TEST_F(ResearchCommand, compare_takes_families_beside_placers) {
  const Json json = json_of("compare model.json -c pair.yaml -p partition,heft");
  std::vector<std::string> placers;
  for (const Json& row : json["runs"]) placers.push_back(row["placer"]);
  std::sort(placers.begin(), placers.end());
  EXPECT_THAT(placers, ElementsAre("heft", "metis", "mincut", "scotch"));
}

TEST_F(ResearchCommand, simulates_lines_of_standard_input) {
  folder_.write("lines",
                "[0, 0, 1]\n"
                R"({"assignment": {"w": "d0", "a": "d0", "b": "d1"}})"
                "\n\n"
                R"({"assignment": ["d0", "d0", 0], "priorities": [1, 2, 3]})"
                "\n[0, 0]\n[0, 0, 7]\n{\"groups\": [0, 0, 1]}");
  const CommandResult result = folder_.shell("cat lines | " EMPLACE_BINARY
                                             " simulate model.json - -c pair.yaml --threads 2 "
                                             "--problem problem.json");
  const Json problem = Json::parse(folder_.read("problem.json"));
  EXPECT_EQ(problem["groups"].size(), 3);
  EXPECT_EQ(problem["ops"][1]["time_ns"], (Json{100000, 100000}));
  EXPECT_EQ(result.exit_code, 2) << "two of them are wrong";
  const std::vector<Json> lines = json_lines(result.out);
  ASSERT_EQ(lines.size(), 1U + 6U);
  EXPECT_EQ(lines[0]["format"], "emplace.simulations/1");
  EXPECT_EQ(lines[0]["model"], "model.json");
  const Json one = json_of("simulate model.json p.json -c pair.yaml");
  for (const std::size_t i : {1, 2, 6}) {
    EXPECT_EQ(lines[i]["step_ns"], one["step_ns"]) << i;
    EXPECT_EQ(lines[i]["fits"], true);
    EXPECT_EQ(lines[i]["shortfall_bytes"], 0);
    EXPECT_EQ(lines[i]["peak_bytes"][0], one["devices"][0]["peak_bytes"]);
  }
  EXPECT_EQ(lines[3]["step_ns"], 150000);
  EXPECT_EQ(lines[2]["placement"], 2);
  EXPECT_EQ(lines[3]["placement"], 4) << "empty lines count";
  EXPECT_THAT(lines[4]["error"].get<std::string>(), HasSubstr("expected 3 devices"));
  EXPECT_THAT(lines[5]["error"].get<std::string>(),
              AllOf(HasSubstr("op 'b'"), HasSubstr("0 to 1")));
  EXPECT_EQ(lines[6]["placement"], 7) << "the last line needs no end";
}

TEST_F(ResearchCommand, simulates_a_folder_and_a_file_of_lines) {
  folder_.shell(
      "mkdir many && cp p.json many/b.json && cp p.json many/a.json && echo > many/x.txt");
  const std::vector<Json> lines = json_lines(run("simulate model.json many -c pair.yaml").out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1]["placement"], "many/a.json");
  EXPECT_EQ(lines[2]["placement"], "many/b.json");
  EXPECT_EQ(lines[1]["step_ns"], lines[2]["step_ns"]);
  folder_.write("many.jsonl", "[0,0,0]\n[1,1,1]\n");
  EXPECT_EQ(json_lines(run("simulate model.json many.jsonl -c pair.yaml").out).size(), 3U);
  const CommandResult refused = run("simulate model.json many -c pair.yaml --trace t.json");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--trace"));
}

// Line by line: each answer is there before the next question.
TEST_F(ResearchCommand, answers_each_line_at_once) {
  folder_.write("talk.py", R"(import json, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert "format" in json.loads(child.stdout.readline())
for device in (0, 1, 0):
    child.stdin.write(json.dumps([0, 0, device]) + "\n")
    child.stdin.flush()
    print(json.loads(child.stdout.readline())["step_ns"])
child.stdin.close()
)");
  const CommandResult result = folder_.shell("timeout 60 /usr/bin/python3 talk.py " EMPLACE_BINARY
                                             " simulate model.json - -c pair.yaml");
  EXPECT_EQ(result.out, "150000\n250000\n150000\n") << result.err;
}

TEST_F(ResearchCommand, places_with_a_program_of_the_users) {
  const std::string spec = "\"exec(command=" + climbing_command() + ")\"";
  const Json placed = json_of("place model.json -c pair.yaml --evaluations 50 -p " + spec);
  EXPECT_EQ(placed["step_ns"], 150000);
  const Json compared =
      json_of("compare model.json -c pair.yaml --evaluations 50 --seeds 2 -p heft," + spec);
  EXPECT_EQ(compared["runs"].size(), 3);
  const CommandResult failed =
      run("place model.json -c pair.yaml -p \"exec(command=sh -c 'exit 4')\"");
  EXPECT_EQ(failed.exit_code, 2);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("sh -c 'exit 4'"), HasSubstr("exit code 4")));
  EXPECT_THAT(run("place model.json -c pair.yaml -p exec").err, HasSubstr("command is missing"));
}

TEST_F(ResearchCommand, ctrl_c_ends_a_program_that_goes_on_for_ever) {
  folder_.write("endless.py", R"(import json, sys, time
problem = json.loads(sys.stdin.readline())
print(json.dumps({"evaluate": [0] * len(problem["groups"])}), flush=True)
sys.stdin.readline()
time.sleep(600)
)");
  const CommandResult result =
      folder_.shell("timeout --foreground --preserve-status -s INT 3 " EMPLACE_BINARY
                    " place model.json -c pair.yaml --evaluations 9 -o best.json -p "
                    "\"exec(command=/usr/bin/python3 endless.py,grace=0.5)\"");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the best of the placements that it asked about"));
  EXPECT_TRUE(folder_.has("best.json"));
}

}  // namespace
}  // namespace emplace
