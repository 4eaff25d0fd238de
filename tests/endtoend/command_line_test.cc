// The command line as a person meets it: what is printed where, which files appear, exit codes.
#include "support/program.h"

namespace emplace {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kChain;
using Json = nlohmann::json;

const std::string kTwoDevices = testing::pair_of_devices(
    "bandwidth: 7.6GB/s, hold_us: 25, multicast: true", "count: 2, gap_us: 5.7");

class CommandLine : public testing::Program {
 protected:
  CommandLine() {
    folder_.write("chain.json", kChain);
    folder_.write("pair.yaml", kTwoDevices);
  }
};

TEST_F(CommandLine, simulate_prints_the_object_of_the_format_and_nothing_else) {
  folder_.write(
      "p.json",
      R"({"format": "emplace.placement/1", "assignment": {"w": "d0", "a": "d0", "b": "d1"}})");
  const CommandResult result = run("simulate chain.json p.json --cluster pair.yaml --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["step_ns"], 250000);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["lower_bound_ns"], 155700);
  EXPECT_EQ(json["devices"][0], (Json{{"name", "d0"},
                                      {"busy_ns", 100000},
                                      {"peak_bytes", 1520000},
                                      {"capacity_bytes", 1 << 30}}));
  EXPECT_EQ(json["channels"][0], (Json{{"name", "d0->*"}, {"busy_ns", 100000}, {"bytes", 760000}}));
  EXPECT_EQ(json["transfers"], 1);
  EXPECT_EQ(json["transfer_bytes"], 760000);
}

TEST_F(CommandLine, place_writes_a_placement_that_simulates_to_what_it_predicts) {
  const CommandResult placed = run("place chain.json -c pair.yaml -o p.json --trace t.json --json");
  ASSERT_EQ(placed.exit_code, 0) << placed.err;
  const Json predicted = Json::parse(placed.out);
  EXPECT_EQ(predicted["step_ns"], 155700);
  const Json file = Json::parse(folder_.read("p.json"));
  EXPECT_EQ(file["predicted"]["step_ns"], 155700);
  EXPECT_EQ(Json::parse(run("simulate chain.json p.json -c pair.yaml --json").out)["step_ns"],
            155700);
  EXPECT_FALSE(Json::parse(folder_.read("t.json"))["traceEvents"].empty());
}

TEST_F(CommandLine, throughput_objective_reports_a_period) {
  const CommandResult result = run("place chain.json -c pair.yaml --objective throughput --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // What the bus takes for a's result, and is held after it.
  EXPECT_EQ(Json::parse(result.out)["period_ns"], 125000);
}

TEST_F(CommandLine, compare_sorts_by_step_time_and_says_what_it_comes_to) {
  const CommandResult result =
      run("compare chain.json -c pair.yaml --placers random,heft,single --seeds 3 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json rows = Json::parse(result.out)["runs"];
  ASSERT_EQ(rows.size(), 5);
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_LE(rows[i - 1]["step_ns"], rows[i]["step_ns"]);
  EXPECT_THAT(run("compare chain.json -c pair.yaml --placers random,heft").out,
              HasSubstr("a step time of 155.7 us"));
}

TEST_F(CommandLine, exported_trace_has_every_op_and_transfer_at_its_time) {
  folder_.write("p.json", R"({"assignment": {"w": "d0", "a": "d0", "b": "d1"}})");
  const Json trace = Json::parse(run("export chain.json p.json -c pair.yaml -f trace").out);
  std::vector<Json> spans;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
  }
  ASSERT_EQ(spans.size(), 3);
  EXPECT_EQ(spans[0]["args"]["op"], "a");
  EXPECT_EQ(spans[0]["ts"], 0.0);
  EXPECT_EQ(spans[0]["dur"], 100.0);
  EXPECT_EQ(spans[1]["args"]["op"], "b");
  EXPECT_EQ(spans[1]["tid"], 1);
  EXPECT_EQ(spans[1]["ts"], 200.0);
  EXPECT_EQ(spans[2]["cat"], "transfer");
  EXPECT_EQ(spans[2]["args"]["bytes"], 760000);
  EXPECT_EQ(spans[2]["ts"], 100.0);
}

TEST_F(CommandLine, exported_picture_marks_what_crosses_devices) {
  folder_.write("apart.json", R"({"assignment": {"w": "d0", "a": "d0", "b": "d1"}})");
  folder_.write("together.json", R"({"assignment": {"w": "d0", "a": "d0", "b": "d0"}})");
  const std::string apart = run("export chain.json apart.json -c pair.yaml -f dot").out;
  const std::string together = run("export chain.json together.json -c pair.yaml -f dot").out;
  EXPECT_THAT(apart, HasSubstr("n1 -> n2 [color=red"));
  EXPECT_THAT(together, HasSubstr("n1 -> n2;"));
}

TEST_F(CommandLine, exported_placement_reads_back_with_its_priorities) {
  folder_.write("p.json",
                R"({"seed": 18446744073709551615, "assignment": {"w": "d0", "a": "d0", "b": "d1"},
                              "priorities": {"a": 9223372036854775807, "b": -3}})");
  run("export chain.json p.json -c pair.yaml -f placement -o q.json");
  const Json file = Json::parse(folder_.read("q.json"));
  EXPECT_EQ(file["priorities"], (Json{{"w", 0}, {"a", 9223372036854775807}, {"b", -3}}));
  EXPECT_EQ(file["seed"], 18446744073709551615U);
  EXPECT_EQ(run("export chain.json q.json -c pair.yaml -f placement").out, folder_.read("q.json"));
}

TEST_F(CommandLine, exported_graph_needs_neither_placement_nor_cluster) {
  const std::string graph = run("export chain.json -f graph").out;
  folder_.write("again.json", graph);
  EXPECT_EQ(run("export again.json -f graph").out, graph);
  expect_refused("export chain.json -c pair.yaml -f trace", {"trace needs a placement file"});
  expect_refused("export chain.json p.json -f graph", {"graph", "takes no placement file"});
  expect_refused("export chain.json p.json -f trase", {"'trase'", "did you mean 'trace'"});
}

TEST_F(CommandLine, every_command_shows_help_with_an_example) {
  EXPECT_THAT(run("--help").out, HasSubstr("place"));
  for (const std::string command :
       {"place", "compare", "simulate", "export", "partition", "select", "cluster", "list"}) {
    const CommandResult result = run(command + " --help");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, HasSubstr("Example: emplace " + command));
  }
}

TEST_F(CommandLine, cluster_show_prints_a_file_that_reads_back) {
  folder_.write("box.yaml", run("cluster show 4xp100").out);
  EXPECT_EQ(run("cluster show box.yaml").out, folder_.read("box.yaml"));
}

TEST_F(CommandLine, refuses_bad_usage) {
  expect_refused("place chain.json -c pair.yaml -p hefft",
                 {"unknown placer 'hefft'", "did you mean 'heft'"});
  expect_refused("place chain.json -c pair.yaml -p 'heft(speed=1)'",
                 {"placer 'heft'", "unknown option 'speed'"});
  expect_refused("place chain.json -c pair.yaml -p 'round_robin(stride=0)'",
                 {"'stride'", "'0' is not a whole number"});
  expect_refused("place chain.json -c pair.yaml -p 'heft(insertion'", {"expected ')'"});
  expect_refused("place chain.json -c pair.yaml --scheduler lifo", {"unknown scheduler 'lifo'"});
  expect_refused("place chain.json -c pair.yaml --time soon", {"--time soon"});
  expect_refused("place chain.json -c pair.yaml --cost cheap", {"--cost cheap"});
  expect_refused("place chain.json -c 4xq100", {"4xq100"});
  expect_refused("place chain.json", {"the cluster is missing"});
  expect_refused("place nothing.json -c pair.yaml", {"nothing.json"});
  expect_refused("list hefft", {"did you mean 'heft'"});
  expect_refused("place chain.json -c pair.yaml --objective thruput",
                 {"--objective: unknown value 'thruput'", "did you mean 'throughput'",
                  "expected one of: latency, throughput"});
  EXPECT_EQ(run("plaice").exit_code, 2);
  EXPECT_EQ(run("").exit_code, 2);
}

// A graph with `from` replaced by `to`.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(CommandLine, refuses_bad_graphs_naming_file_op_and_field) {
  struct Case {
    std::string from, to;
    std::vector<std::string> messages;
  };
  const std::vector<Case> cases{
      {R"("inputs": [1], "outputs": [2])", R"("inputs": [2], "outputs": [2])", {"op 'b'", "cycle"}},
      {R"("inputs": [0], "outputs": [1])",
       R"("inputs": [2], "outputs": [1])",
       {"op 'a'", "cycle", "'b'"}},
      {R"("inputs": [0], "outputs": [1])",
       R"("inputs": [7], "outputs": [1])",
       {"op 'a'", "inputs", "no tensor 7"}},
      {R"("outputs": [0])", R"("outputs": [])", {"op 'a'", "inputs", "no op produces tensor 0"}},
      {R"("outputs": [2])",
       R"("outputs": [1])",
       {"op 'b'", "outputs", "already produced by op 'a'"}},
      {R"("name": "b")", R"("name": "a")", {"op 'a'", "used twice"}},
      {R"({"bytes": 4})", R"({"bytes": -4})", {"tensor 2", "bytes", "negative"}},
      {R"({"bytes": 4})",
       R"({"shape": [4], "dtype": "float31"})",
       {"tensor 2", "dtype", "float31"}},
      {R"({"bytes": 4})",
       R"({"shape": [99999999999, 99999999999], "dtype": "float32"})",
       {"tensor 2", "overflows"}},
      {R"({"bytes": 4})", R"({"bytes": 99999999999999999999999})", {"tensor 2", "bytes"}},
      {R"("gpu": 50)", R"("gpu": -50)", {"op 'b'", "time_us", "negative"}},
      {R"("gpu": 50)", R"("gpu": "fast")", {"op 'b'", "time_us", "expected a number"}},
      {R"("type": "mm", "inputs": [1])",
       R"("type": "mm", "phase": "sideways", "inputs": [1])",
       {"op 'b'", "phase", "sideways"}},
      {R"("type": "mm", "inputs": [1])",
       R"("type": "mm", "devices": ["tpu"], "inputs": [1])",
       {"op 'b'", "devices", "tpu"}},
      {R"("type": "mm", "inputs": [1])",
       R"("type": "mm", "after": ["z"], "inputs": [1])",
       {"op 'b'", "after", "'z'"}},
      {"emplace.graph/1", "emplace.graph/9", {"format", "emplace.graph/1"}},
      {R"("gpu": 50}})", R"("gpu": 50})", {"malformed JSON"}},
  };
  for (const Case& bad : cases) {
    folder_.write("bad.json", edited(kChain, bad.from, bad.to));
    std::vector<std::string> messages = bad.messages;
    messages.push_back("bad.json");
    expect_refused("place bad.json -c pair.yaml -o out.json", messages);
  }
  folder_.write("bad.json",
                R"({"format": "emplace.graph/1", "name": "none", "tensors": [], "ops": []})");
  expect_refused("place bad.json -c pair.yaml", {"bad.json", "empty"});
  folder_.write("bad.json", "");
  expect_refused("place bad.json -c pair.yaml", {"bad.json", "empty"});
}

TEST_F(CommandLine, refuses_every_truncation_of_a_graph) {
  const std::string whole = kChain;
  for (std::size_t length = 1; length < whole.size(); length += 7) {
    folder_.write("bad.json", whole.substr(0, length));
    expect_refused("place bad.json -c pair.yaml", {"bad.json"});
  }
}

TEST_F(CommandLine, refuses_bad_clusters_naming_device_and_field) {
  struct Case {
    std::string from, to;
    std::vector<std::string> messages;
  };
  const std::vector<Case> cases{
      {"kind: gpu, count", "kind: tpu, count", {"tpu"}},
      {"bandwidth: 7.6GB/s", "bandwidth: 0", {"bandwidth"}},
      {"bandwidth: 7.6GB/s", "bandwidth: -1GB/s", {"bandwidth"}},
      {"gap_us: 5.7", "gap_us: -5.7", {"gap_us"}},
      {"from: \"*\"", "from: tpu", {"tpu"}},
      {"count: 2", "count: 0", {"count"}},
      {"links:", "lnks:", {"lnks"}},
      {"memory: 1GiB", "memory: 1XiB", {"memory"}},
      {"devices: [", "devices: [[", {"line"}},
  };
  for (const Case& bad : cases) {
    folder_.write("bad.yaml", edited(kTwoDevices, bad.from, bad.to));
    std::vector<std::string> messages = bad.messages;
    messages.push_back("bad.yaml");
    expect_refused("place chain.json -c bad.yaml", messages);
  }
  const std::string unlinked = kTwoDevices;
  folder_.write("bad.yaml", unlinked.substr(0, unlinked.find("links:")));
  expect_refused("place chain.json -c bad.yaml", {"device 'd0'", "no link"});
}

TEST_F(CommandLine, lower_bound_is_no_more_than_the_step_even_of_what_does_not_fit) {
  folder_.write("small.yaml", edited(kTwoDevices, "memory: 1GiB", "memory: 10B"));
  folder_.write("p.json", R"({"assignment": {"w": "d0", "a": "d0", "b": "d0"}})");
  const Json json = Json::parse(run("simulate chain.json p.json -c small.yaml --json").out);
  EXPECT_EQ(json["fits"], false);
  EXPECT_LE(json["lower_bound_ns"], json["step_ns"]);
}

TEST_F(CommandLine, a_stream_is_refused_by_the_memory_of_streams) {
  // Both ops' tensors at once on one device do not fit; apart they do, one step at a time.
  folder_.write("small.yaml", edited(kTwoDevices, "count: 2", "count: 2, memory: 1520001"));
  const CommandResult result = run("place chain.json -c small.yaml --objective throughput --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  folder_.write("tiny.yaml", edited(kTwoDevices, "count: 2", "count: 2, memory: 750KB"));
  EXPECT_EQ(run("place chain.json -c tiny.yaml --objective throughput").exit_code, 1);
}

TEST_F(CommandLine, refuses_bad_placements_naming_the_op) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {R"({"assignment": {"w": "d0", "a": "d0"}})", {"op 'b'", "not placed"}},
      {R"({"assignment": {"w": "d0", "a": "d0", "b": "d9"}})", {"op 'b'", "d9"}},
      {R"({"assignment": {"w": "d0", "a": "d0", "b": "d0", "c": "d0"}})", {"'c'"}},
      {R"({"assignment": {"w": "d0", "a": "d0", "b": "d0"}, "priorities": {"c": 1}})",
       {"priorities", "'c'"}},
      {R"({"assignment": {"w": "d0", "a": "d0", "b": 3}})", {"'b'", "expected a string"}},
      {R"({"format": "x", "assignment": {}})", {"format"}},
      {R"({"assignment": {"w": "d0",)", {"malformed JSON"}},
      {R"({"graph": "fork", "assignment": {"w": "d0"}})",
       {"op 'a': is not placed", "for graph 'fork', not 'chain'"}},
      {"# Read me", {"is not a placement file: expected JSON"}},
  };
  for (const auto& [text, messages] : cases) {
    folder_.write("bad.json", text);
    expect_refused("simulate chain.json bad.json -c pair.yaml", messages);
  }
}

TEST_F(CommandLine, says_before_searching_that_a_model_cannot_fit) {
  folder_.write("small.yaml", edited(kTwoDevices, "count: 2", "count: 2, memory: 300KB"));
  const CommandResult result = run("place chain.json -c small.yaml -o p.json");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("short"));
  EXPECT_FALSE(folder_.has("p.json"));
}

TEST_F(CommandLine, says_which_device_is_short_when_the_answer_does_not_fit) {
  folder_.write("small.yaml", edited(kTwoDevices, "count: 2", "count: 2, memory: 1520001"));
  const CommandResult result = run("place chain.json -c small.yaml -p 'single(device=0)'");
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr("does not fit: 'd0'"));
}

}  // namespace
}  // namespace emplace
