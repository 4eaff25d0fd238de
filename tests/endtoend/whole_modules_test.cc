// Placements that keep modules whole, and what answers say of layers and of modules that are cut.
#include <map>
#include <set>

#include "support/program.h"

namespace emplace {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// Two branches of one module: on one device it takes 210 us to keep it whole, on two 111 us.
constexpr const char* kOneModule = R"({"format": "emplace.graph/1", "name": "fork",
  "tensors": [{"bytes": 1000}, {"bytes": 1000}, {"bytes": 4}, {"bytes": 4}],
  "ops": [
    {"name": "left", "type": "mm", "inputs": [], "outputs": [0], "module": "net.body",
     "time_us": {"gpu": 100}},
    {"name": "right", "type": "mm", "inputs": [], "outputs": [1], "module": "net.body",
     "time_us": {"gpu": 100}},
    {"name": "join", "type": "add", "inputs": [0, 1], "outputs": [2], "module": "net.body",
     "time_us": {"gpu": 10}},
    {"name": "out", "type": "add", "inputs": [2], "outputs": [3], "module": "net.head",
     "time_us": {"gpu": 0}}]})";

class WholeModulesCommand : public testing::Program {
 protected:
  WholeModulesCommand() {
    folder_.write("fork.json", kOneModule);
    folder_.write("two.yaml", testing::pair_of_devices("bandwidth: 1GB/s"));
  }

  // For each module of a zoo model, as the exported graph names it, the devices of its ops.
  std::map<std::string, std::set<std::string>> devices_of_modules(const std::string& model,
                                                                  std::size_t parts) const {
    const Json graph = Json::parse(run("export " + model + " -f graph").out);
    const Json placed = Json::parse(folder_.read("p.json"))["assignment"];
    std::map<std::string, std::set<std::string>> devices;
    for (const Json& op : graph["ops"]) {
      if (op.value("view", false) || op.value("module", "").empty()) continue;
      std::string name = op["module"];
      std::size_t end = name.find('.');
      for (std::size_t i = 1; i < parts && end != std::string::npos; ++i) {
        end = name.find('.', end + 1);
      }
      devices[name.substr(0, end)].insert(placed[op["name"].get<std::string>()]);
    }
    return devices;
  }
};

TEST_F(WholeModulesCommand, place_keeps_modules_on_one_device_and_says_what_that_costs) {
  const CommandResult result =
      run("place fork.json -c two.yaml --modules whole --evaluations 300 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["step_ns"], 210000);
  EXPECT_TRUE(json["explanation"]["cut_modules"].empty());
  const Json& whole = json["explanation"]["whole_modules"];
  EXPECT_EQ(whole["granularity"], "module");
  EXPECT_EQ(whole["parts"], 2);
  EXPECT_EQ(whole["op_by_op"]["step_ns"], 111000);
  EXPECT_NEAR(whole["cost"].get<double>(), 210.0 / 111 - 1, 1e-9);
  EXPECT_GE(whole["cost_at_most"].get<double>(), whole["cost"].get<double>());
  EXPECT_THAT(run("place fork.json -c two.yaml --modules whole --evaluations 300").out,
              HasSubstr("keeping modules whole costs 89 % against 111.0 us op by op, which auto"));
}

TEST_F(WholeModulesCommand, op_by_op_modules_that_are_cut_are_named) {
  const CommandResult result = run("place fork.json -c two.yaml --evaluations 300");
  EXPECT_THAT(result.out, HasSubstr("cut between devices: 1 of 2 modules: net.body (d0, d1)"));
  EXPECT_THAT(result.out, Not(HasSubstr("op by op")));
}

TEST_F(WholeModulesCommand, compare_and_every_placer_keep_modules_whole) {
  const CommandResult result =
      run("compare fork.json -c two.yaml --modules whole --placers heuristic,partition,search "
          "--evaluations 50 --json -o p.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json rows = Json::parse(result.out)["runs"];
  EXPECT_GT(rows.size(), 10U);
  // Between the two modules there is one tensor.
  for (const Json& row : rows) EXPECT_LE(row["transfers"], 1) << row["placer"];
  const Json whole = json_of(
      "compare fork.json -c two.yaml --modules whole -p auto --evaluations 300")["whole_modules"];
  EXPECT_EQ(whole["parts"], 2);
  EXPECT_EQ(whole["op_by_op"]["step_ns"], 111000);
  EXPECT_THAT(run("compare fork.json -c two.yaml --modules whole --placers heft,auto "
                  "--evaluations 100")
                  .out,
              HasSubstr("For the best: keeping modules whole costs"));
}

TEST_F(WholeModulesCommand, a_training_step_has_its_modules_backward_and_update_in_one_place) {
  const std::string model = "zoo:vgg-16:batch=8";
  const CommandResult result = run("place " + model +
                                   " -c 2xp100 --modules whole --optimizer adam --evaluations 60 "
                                   "-p metis -o p.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::set<std::string> used;
  for (const auto& [module, devices] : devices_of_modules(model + " --optimizer adam", 99)) {
    EXPECT_EQ(devices.size(), 1U) << module;
    used.insert(devices.begin(), devices.end());
  }
  EXPECT_EQ(used.size(), 2U) << "which is no feat on one device";
  const Json file = Json::parse(folder_.read("p.json"));
  EXPECT_EQ(file["made_with"], (Json{{"optimizer", "adam"}, {"granularity", "module"}}));
  EXPECT_EQ(
      run("simulate " + model + " p.json -c 2xp100 --modules whole --optimizer adam").exit_code, 0);
}

TEST_F(WholeModulesCommand, layers_are_kept_whole_and_listed_as_ranges) {
  const std::string model = "zoo:bert-base:layers=6,batch=2,training=false";
  const CommandResult result =
      run("place " + model + " -c 2xp100 --granularity layer -p metis -o p.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const auto& [layer, devices] : devices_of_modules(model, 3)) {
    if (layer.find(".layer.") == std::string::npos) continue;
    EXPECT_EQ(devices.size(), 1U) << layer;
  }
  EXPECT_THAT(result.out, HasSubstr("keeping layers whole"));
  EXPECT_THAT(result.out, HasSubstr("every module is on one device"));
}

TEST_F(WholeModulesCommand, refuses_what_cannot_be) {
  folder_.write("plain.json", R"({"format": "emplace.graph/1", "name": "plain",
    "tensors": [{"bytes": 4}], "ops": [{"name": "a", "type": "mm", "inputs": [], "outputs": [0],
    "time_us": {"gpu": 1}}]})");
  expect_refused("place plain.json -c two.yaml --modules whole",
                 {"plain.json: graph 'plain' names no modules"});
  expect_refused("place fork.json -c two.yaml --modules whole --granularity op",
                 {"--modules whole and --granularity op"});
  expect_refused("partition fork.json -c two.yaml --modules whole",
                 {"a partition gives every device a part"});
  folder_.write("p.json",
                R"({"assignment": {"left": "d0", "right": "d1", "join": "d0", "out": "d0"}})");
  EXPECT_EQ(run("simulate fork.json p.json -c two.yaml").exit_code, 0);
  expect_refused("simulate fork.json p.json -c two.yaml --modules whole", {"op 'right'"});
}

}  // namespace
}  // namespace emplace
