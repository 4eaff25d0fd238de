// What people ask of `place` and `compare` beyond a model and a cluster: pins, fewer devices,
// starts, budgets; and what the answer says of itself.
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/learned_placers.h"

namespace emplace {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TemporaryFolder;
using Json = nlohmann::json;

// Two branches that meet; together they are faster on two devices.
constexpr const char* kFork = R"({"format": "emplace.graph/1", "name": "fork",
  "tensors": [{"bytes": 1000}, {"bytes": 1000}, {"bytes": 1000}, {"bytes": 4}],
  "ops": [
    {"name": "left.weight", "type": "parameter", "inputs": [], "outputs": [0]},
    {"name": "left.mm", "type": "mm", "inputs": [0], "outputs": [1], "module": "left",
     "time_us": {"gpu": 100}},
    {"name": "right.mm", "type": "mm", "inputs": [], "outputs": [2], "module": "right",
     "time_us": {"gpu": 100}},
    {"name": "join", "type": "add", "inputs": [1, 2], "outputs": [3], "module": "head",
     "time_us": {"gpu": 10}}]})";

constexpr const char* kFour = R"(format: emplace.cluster/1
name: four
kinds: {gpu: {peak_flops: {float32: 1e12}, memory_bandwidth: 100GB/s, memory: 1GiB, launch_us: 1}}
devices: [{name: d, kind: gpu, count: 3}, {name: slow, kind: gpu, slowdown: 4}]
links: [{from: "*", to: "*", bandwidth: 1GB/s, channel: out}]
)";

class PlaceCommand : public ::testing::Test {
 protected:
  PlaceCommand() {
    folder_.write("fork.json", kFork);
    folder_.write("four.yaml", kFour);
  }

  CommandResult run(const std::string& arguments) const { return folder_.emplace(arguments); }

  Json place(const std::string& arguments) const {
    const CommandResult result =
        run("place fork.json -c four.yaml -o placed.json --json " + arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, IsEmpty());
    return Json::parse(result.out);
  }
  Json assignment() const { return Json::parse(folder_.read("placed.json"))["assignment"]; }

  void expect_refused(const std::string& arguments,
                      const std::vector<std::string>& messages) const {
    const CommandResult result = run("place fork.json -c four.yaml " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, IsEmpty());
    for (const std::string& message : messages) {
      EXPECT_THAT(result.err, HasSubstr(message)) << arguments;
    }
  }

  TemporaryFolder folder_;
};

TEST_F(PlaceCommand, pins_and_what_is_forbidden_are_kept) {
  EXPECT_EQ(place("")["step_ns"], 111000);
  EXPECT_EQ(place("--pin left=d2 --forbid '*=d0' --forbid join=d2")["fits"], true);
  const Json placed = assignment();
  EXPECT_EQ(placed["left.weight"], "d2");
  EXPECT_EQ(placed["left.mm"], "d2");
  for (const auto& [op, device] : placed.items()) EXPECT_NE(device, "d0") << op;
  EXPECT_NE(placed["join"], "d2");
}

TEST_F(PlaceCommand, bad_rules_are_refused) {
  expect_refused("--pin left", {"pin left", "expected OPS=DEVICE"});
  expect_refused("--pin lefty=d0", {"lefty", "did you mean 'left'"});
  expect_refused("--forbid left=d9", {"'d9' is no device"});
  expect_refused("--pin left=d0 --pin left.mm=d1", {"op 'left.mm'", "no device is left"});
  folder_.write("p.json", R"({"assignment": {"left.weight": "d0", "left.mm": "d0",
                              "right.mm": "d1", "join": "d0"}})");
  const CommandResult result = run("simulate fork.json p.json -c four.yaml --pin right=d0");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("op 'right.mm'"));
}

TEST_F(PlaceCommand, no_more_devices_are_used_than_asked_for) {
  const std::string several = "single,expert,scotch,dp,lns";
  const std::string learned = learned_placers().empty() ? "" : ",post";
  for (const std::string& placer :
       {several + learned, std::string("round_robin"), std::string("hash"), std::string("metis"),
        std::string("heft")}) {
    const Json one = place("--devices 1 --evaluations 100 -p " + placer);
    EXPECT_EQ(one["step_ns"], 210000) << placer << ": a fast device with everything";
    EXPECT_EQ(one["optimal"], true) << "nothing on one device is faster";
    place("--devices 2 --evaluations 100 -p " + placer);
    const Json placed = assignment();
    std::set<std::string> used;
    for (const auto& [op, device] : placed.items()) used.insert(device);
    EXPECT_LE(used.size(), 2) << placer;
  }
  EXPECT_EQ(place("--devices 2 --evaluations 500")["step_ns"], 111000);
  place("--devices 1 --pin join=slow --evaluations 100");
  EXPECT_EQ(assignment()["left.mm"], "slow");
  const Json rows = Json::parse(run("compare fork.json -c four.yaml --devices 1 -p random,single "
                                    "--seeds 3 --json")
                                    .out)["runs"];
  ASSERT_EQ(rows.size(), 4);
  for (const Json& row : rows) EXPECT_EQ(row["transfers"], 0);
}

// A CPU that is as fast as the two devices beside it.
constexpr const char* kWithCpu = R"(format: emplace.cluster/1
kinds:
  gpu: {peak_flops: {float32: 1e12}, memory_bandwidth: 100GB/s, memory: 1GiB, launch_us: 1}
  cpu-fast: {like: gpu}
devices: [{name: d, kind: gpu, count: 2}, {name: host, kind: cpu-fast}]
links: [{bandwidth: 1GB/s}]
)";

TEST_F(PlaceCommand, cpus_take_ops_only_when_asked_or_needed) {
  std::string timed = kFork;
  for (std::size_t at = 0; (at = timed.find("\"gpu\": 100", at)) != std::string::npos; ++at) {
    timed.replace(at, 10, "\"gpu\": 100, \"cpu-fast\": 20");
  }
  folder_.write("fork.json", timed);
  folder_.write("box.yaml", kWithCpu);
  const std::string command = "place fork.json -c box.yaml -o placed.json --evaluations 200 ";
  const auto on_host = [&](const std::string& arguments) {
    EXPECT_EQ(run(command + arguments).exit_code, 0) << arguments;
    const Json placed = assignment();
    int found = 0;
    for (const auto& [op, device] : placed.items()) found += device == "host" ? 1 : 0;
    return found;
  };
  EXPECT_EQ(on_host(""), 0);
  EXPECT_GT(on_host("--use-cpu"), 0);
  EXPECT_GT(on_host("--pin left=host"), 0);
  const CommandResult without = run(command);
  EXPECT_THAT(without.out, HasSubstr("on box.yaml (3 devices)"));
  EXPECT_THAT(without.out, HasSubstr("without CPUs"));
  EXPECT_THAT(without.out, HasSubstr("--use-cpu"));
  EXPECT_THAT(without.out, Not(HasSubstr("is not counted")));
  const CommandResult with = run(command + "--pin left=host --pin right=d0");
  EXPECT_THAT(with.out, HasSubstr("CPUs also start the accelerators' kernels"));
  std::string small = kWithCpu;
  small.replace(small.find("memory: 1GiB"), 12, "memory: 500");
  small.replace(small.find("{like: gpu}"), 11, "{like: gpu, memory: 1GiB}");
  folder_.write("box.yaml", small);
  EXPECT_GT(on_host(""), 0) << "too small for any tensor";
}

TEST_F(PlaceCommand, device_caps_that_cannot_be_kept_are_refused) {
  expect_refused("--devices 1 --pin left=d0 --pin right=d1",
                 {"at most 1 device", "may run every op"});
  EXPECT_EQ(run("place fork.json -c four.yaml --devices 0").exit_code, 2);
  EXPECT_EQ(run("place fork.json -c four.yaml --devices many").exit_code, 2);
}

TEST_F(PlaceCommand, says_that_nothing_fits_on_so_few_devices) {
  std::string small = kFour;
  small.replace(small.find("memory: 1GiB"), 12, "memory: 6500");
  folder_.write("small.yaml", small);
  std::string heavy = kFork;
  heavy.replace(heavy.find("\"module\": \"left\""), 16,
                R"("module": "left", "persistent_bytes": 3000)");
  heavy.replace(heavy.find("\"module\": \"right\""), 17,
                R"("module": "right", "persistent_bytes": 3000)");
  folder_.write("heavy.json", heavy);
  EXPECT_EQ(run("place heavy.json -c small.yaml --devices 2").exit_code, 0);
  const CommandResult one = run("place heavy.json -c small.yaml --devices 1");
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_THAT(one.err, HasSubstr("on 1 device: "));
}

TEST_F(PlaceCommand, a_start_is_checked_before_it_is_used) {
  const std::string good = R"({"assignment": {"left.weight": "d0", "left.mm": "d0",
                               "right.mm": "d1", "join": "d0"}})";
  folder_.write("good.json", good);
  EXPECT_EQ(place("--start good.json")["step_ns"], 111000);
  expect_refused("--start nothing.json", {"nothing.json"});
  expect_refused("--start good.json --pin right=d2", {"good.json", "op 'right.mm'", "d2"});
  expect_refused("--start good.json --devices 1", {"good.json", "uses 2 devices"});
  for (const auto& [from, to, message] :
       {std::tuple("\"join\"", "\"joint\"", "'joint'"), {"\"d1\"", "\"d7\"", "'d7'"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string(from).size(), to);
    folder_.write("bad.json", bad);
    expect_refused("--start bad.json", {"bad.json", message});
  }
}

TEST_F(PlaceCommand, says_when_the_start_was_better) {
  folder_.write("good.json", R"({"assignment": {"left.weight": "d0", "left.mm": "d0",
                                 "right.mm": "d1", "join": "d0"}})");
  const CommandResult result = run("place fork.json -c four.yaml -p single --start good.json");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("good.json"));
  EXPECT_THAT(result.err, HasSubstr("111.0 us"));
}

TEST_F(PlaceCommand, budgets_are_checked) {
  place("--time 2s --evaluations 100 --threads 1");
  EXPECT_EQ(run("place fork.json -c four.yaml --threads 0").exit_code, 2);
  EXPECT_EQ(run("place fork.json -c four.yaml --evaluations -1").exit_code, 2);
  EXPECT_THAT(run("place --help").out, HasSubstr("10s"));
}

TEST_F(PlaceCommand, gap_and_optimality_are_those_of_the_bound) {
  const Json quick = place("-p heft");
  EXPECT_EQ(quick["optimal"], false);
  EXPECT_EQ(quick["lower_bound_ns"], 110000);
  EXPECT_NEAR(quick["gap"].get<double>(), 1.0 / 110, 1e-9);
  const Json best = place("");
  EXPECT_EQ(best["optimal"], true) << "a search proves that a transfer must be paid for";
  EXPECT_EQ(best["step_ns"], 111000);
  const Json alone = place("--devices 1");
  EXPECT_EQ(alone["gap"], 0.0);
  EXPECT_THAT(run("place fork.json -c four.yaml --devices 1").out, HasSubstr("proven optimal"));
}

TEST_F(PlaceCommand, json_explains_the_step) {
  for (const Json& json :
       {place("--pin left=d0 --pin right=d1 --pin join=d1"),
        Json::parse(run("simulate fork.json placed.json -c four.yaml --json").out)}) {
    const Json& chain = json["explanation"]["chain"];
    EXPECT_EQ(chain["compute_ns"], 110000);
    EXPECT_EQ(chain["transfer_ns"], 1000);
    EXPECT_EQ(chain["device_wait_ns"], 0);
    EXPECT_EQ(chain["longest"][1]["transfer"]["producer"], "left.mm");
    EXPECT_EQ(json["explanation"]["loads"][0],
              (Json{{"kind", "device"}, {"name", "d1"}, {"load_ns", 110000}}));
    EXPECT_EQ(json["explanation"]["contents"][0]["modules"][0]["first"], "left");
  }
  const Json one = place("")["explanation"]["fitting_device"];
  EXPECT_EQ(one["device"], "d0");
  EXPECT_EQ(one["step_ns"], 210000);
}

TEST_F(PlaceCommand, text_explains_the_step) {
  const std::string text = run("place fork.json -c four.yaml --pin left=d0").out;
  EXPECT_THAT(text, HasSubstr("What limits the step"));
  EXPECT_THAT(text, HasSubstr("99 % computing"));
  EXPECT_THAT(text, HasSubstr("left.mm on d0 (100.0 us)"));
  EXPECT_THAT(text, HasSubstr("not used: "));
  EXPECT_THAT(text, HasSubstr("d0 alone would take 210.0 us, 1.89 times as long"));
  const std::string pinned = run("place fork.json -c four.yaml --pin left=d0 --pin right=d1").out;
  EXPECT_THAT(pinned, HasSubstr("not every op may be on the same device"));
  EXPECT_THAT(
      run("place fork.json -c four.yaml -p single").out,
      HasSubstr("this is one device, but a split fits and is faster: expert takes 111.0 us"));
  const std::string stream = run("place fork.json -c four.yaml --objective throughput").out;
  EXPECT_THAT(stream, HasSubstr("device d0 sets it: 100.0 us"));
  EXPECT_THAT(stream, HasSubstr("next is device d1 with"));
}

// A step needs 2.5 GiB, so a stream of them does, one after the other.
TEST_F(PlaceCommand, streams_a_model_that_fits_one_device) {
  const CommandResult result = run(
      "place zoo:resnet-101:training=false,batch=256 -c 1xrtx3090 --objective throughput --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["stream"]["in_flight"], 1);
  EXPECT_EQ(json["period_ns"], json["step_ns"]);
  EXPECT_EQ(json["optimal"], true);
  EXPECT_LT(json["devices"][0]["peak_bytes"], 3'000'000'000);
}

TEST_F(PlaceCommand, says_what_would_make_it_fit) {
  std::string small = kFour;
  small.replace(small.find("memory: 1GiB"), 12, "memory: 2500");
  folder_.write("small.yaml", small);
  const CommandResult result = run("place fork.json -c small.yaml -p 'single(device=0)'");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("does not fit: 'd0'"));
  EXPECT_THAT(result.out, HasSubstr("it would fit with 1.21 times the memory"));
  EXPECT_THAT(result.out, HasSubstr("a smaller batch would help"));
  EXPECT_THAT(result.out, Not(HasSubstr("recomputing")));
}

TEST_F(PlaceCommand, an_interrupted_search_still_writes_the_best) {
  const CommandResult result =
      folder_.shell("timeout --foreground --preserve-status -s INT 2 " EMPLACE_BINARY
                    " compare " EMPLACE_SOURCE_DIR
                    "/examples/gnmt4-b256.json.gz -c 4xp100 -p random --seeds 1000 -o best.json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("of 1000 runs gave a result"));
  EXPECT_TRUE(folder_.has("best.json"));
}

}  // namespace
}  // namespace emplace
