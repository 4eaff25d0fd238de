// emplace export, import, show, completion and man.
#include <algorithm>
#include <random>
#include <sstream>

#include "io/onnx_check.h"
#include "support/program.h"

namespace emplace {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kGpt =
    "gpt2-small:batch=2,sequence=4,layers=4,hidden=8,heads=2,vocabulary=17,positions=8,training="
    "false";

// Its head has a weight of its own.
constexpr const char* kLlama =
    "llama3-8b:batch=2,sequence=4,layers=4,hidden=16,heads=4,kv_heads=2,intermediate=12,"
    "vocabulary=17,training=false";

class ExportCommand : public testing::Program {
 protected:
  CommandResult run(const std::string& arguments) const {
    CommandResult result = folder_.emplace(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.err;
    return result;
  }

  // model.onnx, its weights and a placement of it.
  void write_model(const std::string& zoo, const std::string& placing) const {
    run("zoo export " + zoo + " -o model.onnx");
    run("place model.onnx -c 4xp100 -q -o placement.json " + placing);
    const onnx::ModelProto model = parse_onnx(folder_.read("model.onnx"));
    std::map<std::string, std::size_t> sizes;
    for (const auto& tensor : model.graph().initializer()) {
      std::map<std::string, std::string> entries;
      for (const auto& entry : tensor.external_data()) entries[entry.key()] = entry.value();
      std::size_t& size = sizes[entries.at("location")];
      size = std::max(size, std::stoul(entries.at("offset")) + std::stoul(entries.at("length")));
    }
    for (const auto& [file, size] : sizes) {
      std::mt19937 numbers(5);
      std::string bytes(size, '\0');
      for (std::size_t i = 0; i + 4 <= size; i += 4) {
        const float number = static_cast<float>(numbers() % 1000) / 1000.F - 0.4F;
        std::memcpy(bytes.data() + i, &number, 4);
      }
      folder_.write(file, bytes);
    }
  }
};

TEST_F(ExportCommand, parts_bring_their_weights_and_replace_earlier_ones) {
  write_model(kGpt, "--placer expert");
  const CommandResult first =
      run("export model.onnx placement.json -c 4xp100 -f onnx-parts -o parts");
  EXPECT_THAT(first.err, HasSubstr("tensors that go from one to another"));
  EXPECT_THAT(first.err, HasSubstr("wrote parts"));
  const Json manifest = Json::parse(folder_.read("parts/manifest.json"));
  EXPECT_GT(manifest["parts"].size(), 1U);
  for (const Json& part : manifest["parts"]) {
    EXPECT_TRUE(folder_.has("parts/" + part["file"].get<std::string>()));
    if (part.contains("weights")) {
      EXPECT_TRUE(folder_.has("parts/" + part["weights"].get<std::string>()));
    }
  }
  run("export model.onnx placement.json -c 4xp100 -f onnx-parts -o parts");
  folder_.shell("mkdir mine && touch mine/notes");
  expect_refused("export model.onnx placement.json -c 4xp100 -f onnx-parts -o mine",
                 std::vector<std::string>{"with other files in it"});
  EXPECT_FALSE(folder_.has("mine/manifest.json"));
  folder_.write("mine/manifest.json", "{\"name\": \"another program's\"}");
  expect_refused("export model.onnx placement.json -c 4xp100 -f onnx-parts -o mine",
                 std::vector<std::string>{"with other files in it"});
  EXPECT_TRUE(folder_.has("mine/notes"));
  for (const char* input : {"model.onnx", "placement.json"}) {
    expect_refused(fmt::format("export model.onnx placement.json -c 4xp100 -f csv -o {}", input),
                   std::vector<std::string>{"is an input too"});
  }
  expect_refused("export model.onnx placement.json -c 4xp100 -f onnx-parts",
                 std::vector<std::string>{"is a folder: expected --output FOLDER"});
}

// Where node and npm's onnxruntime-node are; NODE_PATH says where.
TEST_F(ExportCommand, onnx_runtime_computes_the_same_from_parts) {
  if (folder_.shell("node -e \"require('onnxruntime-node')\"").exit_code != 0) {
    GTEST_SKIP() << "needs node and onnxruntime-node";
  }
  for (const char* placing : {"--placer expert", "--placer random --seed 3"}) {
    write_model(kGpt, placing);
    run("export model.onnx placement.json -c 4xp100 -f onnx-parts -o parts");
    const CommandResult result =
        folder_.shell("node " EMPLACE_SOURCE_DIR "/tests/endtoend/run_parts.cjs model.onnx parts");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("same: "));
    run("export model.onnx placement.json -c 4xp100 -f onnx-devices -o placed.onnx");
    EXPECT_EQ(
        folder_.shell("node " EMPLACE_SOURCE_DIR "/tests/endtoend/run_parts.cjs placed.onnx parts")
            .exit_code,
        0);
  }
}

TEST_F(ExportCommand, annotations_are_a_placement_to_begin_from) {
  write_model(kGpt, "--placer random --seed 3");
  run("export model.onnx placement.json -c 4xp100 -f onnx-devices -o placed.onnx");
  run("import model.onnx placed.onnx -c 4xp100 -f onnx-devices -o back.json");
  const Json given = Json::parse(folder_.read("placement.json"));
  const Json back = Json::parse(folder_.read("back.json"));
  // Nodes are where they were; what is no node follows those that read it.
  const onnx::ModelProto model = parse_onnx(folder_.read("model.onnx"));
  for (const auto& node : model.graph().node()) {
    EXPECT_EQ(back["assignment"][node.name()], given["assignment"][node.name()]) << node.name();
  }
  const auto step = [&](const std::string& file) {
    return Json::parse(run("simulate model.onnx " + file + " -c 4xp100 --json").out)["step_ns"];
  };
  EXPECT_EQ(step("placed.onnx"), step("back.json"));
  run("place model.onnx -c 4xp100 --start placed.onnx --evaluations 50 -q");
}

TEST_F(ExportCommand, a_device_map_goes_out_and_in) {
  write_model(kLlama, "--granularity layer --placer expert");
  const CommandResult map =
      run("export model.onnx placement.json -c 4xp100 -f device_map -o map.json");
  const Json json = Json::parse(folder_.read("map.json"));
  EXPECT_GT(json.size(), 1U);
  run("import model.onnx map.json -c 4xp100 -f device_map -o back.json");
  const Json step = Json::parse(run("simulate model.onnx back.json -c 4xp100 --json").out);
  EXPECT_GT(step["step_ns"], 0);
  folder_.write("bad.json", R"({"model.layers.0": 9})");
  expect_refused(
      "import model.onnx bad.json -c 4xp100 -f device_map",
      std::vector<std::string>{"bad.json: module 'model.layers.0'", "has no device '9'"});
}

// What others write by hand: ops and devices.
TEST_F(ExportCommand, names_and_devices_go_in) {
  write_model(kGpt, "--placer expert");
  run("export model.onnx placement.json -c 4xp100 -f csv -o ops.csv");
  std::istringstream ops(folder_.read("ops.csv"));
  std::string line;
  std::getline(ops, line);
  EXPECT_THAT(line, HasSubstr("op,type,module,phase,device"));
  std::string lines;
  const Json names = Json::parse(folder_.read("placement.json"))["assignment"];
  for (const auto& [op, device] : names.items()) {
    lines += op + "," + device.get<std::string>() + "\n";
  }
  folder_.write("theirs.csv", lines);
  folder_.write("theirs.json", names.dump());
  const auto step = [&](const std::string& file) {
    return Json::parse(run("simulate model.onnx " + file + " -c 4xp100 --json").out)["step_ns"];
  };
  for (const std::string file : {"theirs.csv", "theirs.json"}) {
    run("import model.onnx " + file + " -c 4xp100 -f placement-by-name -o back.json");
    EXPECT_EQ(Json::parse(folder_.read("back.json"))["assignment"], names) << file;
    EXPECT_EQ(step("back.json"), step("placement.json")) << file;
  }
  run("place model.onnx -c 4xp100 --start back.json --evaluations 50 -q");
}

TEST_F(ExportCommand, pipelines_go_out) {
  write_model(kLlama, "--granularity layer --placer expert --pin model.rotary=gpu0");
  const std::string from = "export model.onnx placement.json -c 4xp100 --granularity layer -f ";
  run(from + "torchtitan -o titan.toml");
  // The first Python that has it is 3.11.
  const CommandResult parsed = folder_.shell(
      "/usr/bin/python3 -c \"import tomllib; table = tomllib.load(open('titan.toml', 'rb'))"
      "['parallelism']; print(table['pipeline_parallel_degree'], "
      "len(table['module_fqns_per_model_part']))\"");
  if (parsed.exit_code == 0) {
    EXPECT_EQ(parsed.out, "4 4\n");
  }
  expect_refused(from + "torch-schedule", std::vector<std::string>{"no backward pass"});
  expect_refused(
      from + "csv --micro-batches 4",
      std::vector<std::string>{"csv says nothing of micro-batches", "torch-schedule or deepspeed"});
  const std::string training = " -c 4xp100 --granularity layer --training ";
  run("place model.onnx" + training +
      "--placer expert --pin model.rotary=gpu0 -q -o training.json");
  run("export model.onnx training.json" + training +
      "-f torch-schedule --micro-batches 6 -o schedule.csv");
  const std::string schedule = folder_.read("schedule.csv");
  EXPECT_EQ(std::count(schedule.begin(), schedule.end(), '\n'), 4);
  EXPECT_THAT(schedule, HasSubstr("3F5"));
  run(from + "torch-pipeline -o pipeline.json");
  EXPECT_EQ(Json::parse(folder_.read("pipeline.json"))["stages"].size(), 4U);
  run(from + "deepspeed --micro-batches 2 -o deepspeed.json");
  const Json config = Json::parse(folder_.read("deepspeed.json"));
  EXPECT_EQ(config["pipeline"]["stages"], 4);
  EXPECT_EQ(config["train_micro_batch_size_per_gpu"], 1);
}

// Partitions of a model, as settings of training programs.
class ExportedDegrees : public ExportCommand {
 protected:
  std::string divided(const std::string& model, const std::string& method,
                      const std::string& format) const {
    run("partition " + model + " -c 2xv100-nvlink --evaluations 1 --method " + method +
        " -o plan.json -q");
    return run("export " + model + " plan.json -f " + format).out;
  }

  int stage(const std::string& model, const std::string& method) const {
    return Json::parse(divided(model, method, "deepspeed"))["zero_optimization"]["stage"];
  }

  void expect_no_degrees(const std::string& model, const std::string& method,
                         const std::vector<std::string>& parts) const {
    run("partition " + model + " -c 2xv100-nvlink --evaluations 1 --method " + method +
        " -o plan.json -q");
    expect_refused("export " + model + " plan.json -f megatron", parts);
  }
};

// GPT-2 has queries, keys and values in one matrix, of which plans cut each by itself; T5 has
// tables of positions among its inputs, DLRM a weight of one number, and captures have operators
// and updates of their own.
TEST_F(ExportedDegrees, say_the_stage_of_zero) {
  for (const std::string model :
       {"zoo:gpt2-small:layers=2,batch=8,sequence=32,hidden=64,heads=4,vocabulary=128",
        "zoo:t5-small:layers=1,batch=4,sequence=16,hidden=32", "zoo:dlrm:batch=64",
        EMPLACE_SOURCE_DIR "/tests/data/captures/bert-tiny.json.gz",
        EMPLACE_SOURCE_DIR "/tests/data/captures/resnet18-tiny.json.gz"}) {
    SCOPED_TRACE(model);
    EXPECT_EQ(stage(model, "data-parallel"), 0);
    EXPECT_EQ(stage(model, "zero"), 1);
    EXPECT_EQ(stage(model, "'zero(gradients=true)'"), 2);
    EXPECT_EQ(stage(model, "'fsdp(hold=true)'"), 2);
    EXPECT_EQ(stage(model, "fsdp"), 3);
  }
}

TEST_F(ExportedDegrees, are_flags_and_settings) {
  const std::string model =
      "zoo:gpt2-small:layers=2,batch=8,sequence=32,hidden=64,heads=4,vocabulary=128";
  EXPECT_EQ(divided(model, "zero", "megatron"),
            "--use-distributed-optimizer --micro-batch-size 4 --global-batch-size 8\n");
  EXPECT_THAT(divided(model, "fsdp", "torchtitan"), HasSubstr("data_parallel_shard_degree = 2"));
}

// Products by columns whose results are kept by examples are not divided by examples.
TEST_F(ExportedDegrees, are_not_of_other_plans) {
  expect_no_degrees("zoo:gpt2-small:layers=2,batch=8,sequence=32,hidden=64,heads=4,vocabulary=128",
                    "tofu", {"zoo:gpt2-small", "level 0", "expected"});
  expect_no_degrees("zoo:alexnet:batch=8", "all-row", {"level 0", "op '", "expected"});
  expect_no_degrees("zoo:stacked-rnn:layers=1,hidden=16,sequence=2,batch=8", "all-row",
                    {"level 0", "op '", "expected"});
  // Whose router chooses among the tokens of all examples.
  expect_no_degrees("zoo:gpt-oss-20b:layers=1,batch=4,sequence=8,hidden=32", "data-parallel",
                    {"level 0", "TopK", "expected"});
  // Whose operators nothing is known of.
  expect_no_degrees(EMPLACE_SOURCE_DIR "/tests/data/captures/vgg16-b32.json.gz", "all-row",
                    {"level 0", "op 'convolution", "expected"});
}

TEST_F(ExportCommand, formats_say_what_they_need) {
  write_model(kGpt, "--placer single");
  expect_refused("export model.onnx placement.json -c 4xp100 -f dtensor",
                 std::vector<std::string>{"is a placement file", "needs a partition file"});
  expect_refused("export model.onnx -c 4xp100 -f csv",
                 std::vector<std::string>{"--format csv needs a placement file"});
}

TEST_F(ExportCommand, a_partition_goes_out) {
  run("zoo export " + std::string(kGpt) + " -o model.onnx");
  run("partition model.onnx -c 2xp100 --method all-row -q -o plan.json");
  run("export model.onnx plan.json -f jax -o jax.json");
  EXPECT_GT(Json::parse(folder_.read("jax.json"))["specs"].size(), 10U);
  run("export model.onnx plan.json -f dtensor -o dtensor.json");
  run("export model.onnx plan.json -f onnx-devices -o cut.onnx");
  EXPECT_EQ(parse_onnx(folder_.read("cut.onnx")).ir_version(), 11);
}

// Of queries, keys and values two devices have two and one, and cuts of each are not cuts of all.
TEST_F(ExportCommand, a_partition_of_parts_side_by_side_goes_out) {
  run("zoo export gpt2-small:batch=2,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17,"
      "positions=8,training=false -o model.onnx");
  run("partition model.onnx -c 2xp100 --method all-row -q -o plan.json");
  const Json plan = Json::parse(folder_.read("plan.json"));
  const CommandResult jax = run("export model.onnx plan.json -f jax -o jax.json");
  const Json specs = Json::parse(folder_.read("jax.json"))["specs"];
  std::size_t parted = 0;
  for (const auto& [name, spec] : specs.items()) {
    const Json& planned = plan["tensors"][name];
    if (planned["shape"].size() == spec.size()) continue;
    ++parted;
    EXPECT_EQ(planned["split"][0], 0) << name;
    EXPECT_EQ(planned["shape"][0], 3) << name;
    for (const Json& levels : spec) EXPECT_TRUE(levels.is_null()) << name;
  }
  EXPECT_GT(parted, 0U);
  EXPECT_THAT(jax.err, HasSubstr("whole on some level"));
  EXPECT_THAT(jax.err, HasSubstr("shares them out unevenly"));
  const CommandResult cut = run("export model.onnx plan.json -f onnx-devices -o cut.onnx");
  EXPECT_THAT(cut.err, HasSubstr("whole on some level"));
}

TEST_F(ExportCommand, show_prints_a_tree_and_no_colours_into_a_pipe) {
  write_model(kGpt, "--granularity layer --placer expert");
  const std::string with_model = run("show placement.json --model model.onnx").out;
  EXPECT_THAT(with_model, HasSubstr("transformer"));
  EXPECT_THAT(with_model, HasSubstr("weights"));
  EXPECT_THAT(with_model, Not(HasSubstr("\033")));
  // Without the model, too, modules come in the order of the forward pass.
  const std::string by_names = run("show placement.json").out;
  ASSERT_THAT(by_names, ::testing::AllOf(HasSubstr("  transformer"), HasSubstr("  lm_head")));
  EXPECT_LT(by_names.find("  transformer"), by_names.find("  lm_head"));
  const Json json = Json::parse(run("show placement.json --model model.onnx --json").out);
  EXPECT_EQ(json["modules"][0]["depth"], 0);
  folder_.write("other.json",
                R"({"format": "emplace.placement/1", "assignment": {"nothing": "a"}})");
  expect_refused("show other.json --model model.onnx",
                 std::vector<std::string>{"other.json: assignment:", "has no op 'nothing'"});
}

// A terminal of its own, which script(1) makes.
class OnTerminal : public ExportCommand {
 protected:
  void SetUp() override {
    if (folder_.shell("script --version").exit_code != 0) GTEST_SKIP() << "needs script(1)";
  }

  // What `emplace ARGUMENTS` prints there.
  std::string shown(const std::string& environment, const std::string& arguments) const {
    return folder_
        .shell("env LC_ALL=C.UTF-8 " + environment + " script -qec '" EMPLACE_BINARY " " +
               arguments + "' /dev/null")
        .out;
  }
};

TEST_F(OnTerminal, show_uses_colours_unless_told_not_to) {
  write_model(kGpt, "--granularity layer --placer expert");
  EXPECT_THAT(shown("TERM=xterm NO_COLOR=", "show placement.json"), HasSubstr("\033["));
  EXPECT_THAT(shown("TERM=xterm NO_COLOR=1", "show placement.json"), Not(HasSubstr("\033[")));
  EXPECT_THAT(shown("TERM=dumb NO_COLOR=", "show placement.json"), Not(HasSubstr("\033[")));
}

TEST_F(OnTerminal, a_search_is_drawn_where_the_cursor_can_be_moved) {
  const std::string search = "place zoo:inception-v3:batch=32 -c 4xp100 --time 4s";
  const std::string drawn = shown("TERM=xterm", search);
  EXPECT_THAT(drawn, HasSubstr("  gap  "));
  EXPECT_THAT(drawn, HasSubstr("\033[5A"));  // back to the first of six lines
  EXPECT_THAT(shown("TERM=dumb", search), Not(HasSubstr("\033[")));
}

TEST_F(ExportCommand, shells_know_every_command) {
  folder_.write("emplace.bash", run("completion bash").out);
  const auto completed = [&](const std::string& words) {
    return folder_
        .shell("bash -c 'source emplace.bash; COMP_WORDS=(" + words +
               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _emplace; echo ${COMPREPLY[@]}'")
        .out;
  };
  EXPECT_EQ(completed("emplace expo"), "export\n");
  EXPECT_THAT(completed("emplace export --format onnx"), HasSubstr("onnx-parts"));
  EXPECT_THAT(completed("emplace place --clu"), HasSubstr("--cluster"));
  EXPECT_EQ(completed("emplace zoo exp"), "export\n");
  // Bash cuts words at =, : and @.
  EXPECT_EQ(completed("emplace export --format = onnx-p"), "onnx-parts\n");
  EXPECT_EQ(completed("emplace export --format ="), completed("emplace export --format \"\""));
  EXPECT_EQ(completed("emplace place zoo : alexn"), "alexnet\n");
  EXPECT_EQ(completed("emplace place zoo:alexnet -c 4xp1"), "4xp100 4xp100@12GiB\n");
  EXPECT_EQ(completed("emplace place zoo:alexnet -c 4xp100 @ 1"), "12GiB\n");
  EXPECT_EQ(completed("emplace place -p hef"), "heft\n");
  EXPECT_EQ(completed("emplace completion b"), "bash\n");
  EXPECT_THAT(completed("emplace place emplace.b"), HasSubstr("emplace.bash"));
  EXPECT_THAT(completed("emplace place -c emplace.b"), HasSubstr("emplace.bash"));
  for (const char* shell : {"zsh", "fish"}) {
    folder_.write("script", run(std::string("completion ") + shell).out);
    if (folder_.shell(std::string(shell) + " -c true").exit_code != 0) continue;
    const CommandResult parsed = folder_.shell(std::string(shell) + " -n script");
    EXPECT_EQ(parsed.exit_code, 0) << shell << "\n" << parsed.err;
  }
  if (folder_.shell("fish -c true").exit_code == 0) {  // the last of them
    const auto by_fish = [&](const std::string& line) {
      return folder_.shell("fish -c 'source script; complete -C \"" + line + "\"' | cut -f 1").out;
    };
    EXPECT_EQ(by_fish("emplace expo"), "export\n");
    EXPECT_THAT(by_fish("emplace export --form"), HasSubstr("--format"));
    // The zoo's command of the same name.
    EXPECT_THAT(by_fish("emplace zoo export --"), Not(HasSubstr("--format")));
    EXPECT_THAT(by_fish("emplace zoo export --"), HasSubstr("--output"));
    EXPECT_EQ(by_fish("emplace place -p hef"), "heft\n");
    EXPECT_EQ(by_fish("emplace place zoo:alexn"), "zoo:alexnet\n");
  }
  const std::string manual = run("man").out;
  EXPECT_THAT(manual, HasSubstr(".TH EMPLACE 1"));
  EXPECT_THAT(manual, HasSubstr("onnx\\-parts"));
}

}  // namespace
}  // namespace emplace
