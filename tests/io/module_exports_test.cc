// What placements of modules and layers become for runtimes that know those, and what such runtimes
// say of a model, taken back.
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cluster/presets.h"
#include "graph/graph_builder.h"
#include "graph/training.h"

#include "sim/simulator.h"

#include "io/device_map.h"
#include "io/importers.h"
#include "io/layer_flags.h"
#include "io/op_tables.h"
#include "io/pipeline_exports.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// An embedding, layers of two products with a residual sum each, and a head, which shares the
// embedding's table if it is `tied`.
std::shared_ptr<const Problem> decoder(int layers, const std::string& cluster, bool tied = false) {
  GraphBuilder builder("decoder");
  const TensorSpec spec{.shape = {4, 4}, .dtype = DType::kFloat32};
  const auto add = [&](const std::string& name, const std::string& type, const std::string& module,
                       std::vector<TensorId> inputs) {
    return builder.add(
        {.name = name, .type = type, .inputs = std::move(inputs), .flops = 128, .module = module},
        {spec})[0];
  };
  const TensorId x = add("x", "input", "", {});
  const TensorId table = add("embed.weight", "parameter", "embed", {});
  TensorId at = add("embed/Gather", "MatMul", "embed", {x, table});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    const TensorId up = add(layer + ".up.weight", "parameter", layer + ".up", {});
    const TensorId down = add(layer + ".down.weight", "parameter", layer + ".down", {});
    const TensorId wide = add(layer + ".up/MatMul", "MatMul", layer + ".up", {at, up});
    const TensorId back = add(layer + ".down/MatMul", "MatMul", layer + ".down", {wide, down});
    at = add(layer + "/Add", "Add", layer, {at, back});
  }
  const TensorId head = tied ? table : add("head.weight", "parameter", "head", {});
  add("head/MatMul", "MatMul", "head", {at, head});
  return compile(std::make_shared<const Graph>(std::move(builder).build()),
                 std::make_shared<const Cluster>(preset_cluster(cluster)), CostMode::kAnalytic);
}

// The same with its backward pass.
std::shared_ptr<const Problem> trained_decoder(int layers, const std::string& cluster) {
  const auto forward = decoder(layers, cluster);
  return compile(std::make_shared<const Graph>(training_step(forward->graph())),
                 std::make_shared<const Cluster>(preset_cluster(cluster)), CostMode::kAnalytic);
}

// Ops whose names begin so are on that device; the last rule that fits counts.
Placement placed(const Problem& problem,
                 const std::vector<std::pair<std::string, DeviceId>>& rules) {
  Placement placement(problem.num_ops(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    for (const auto& [prefix, device] : rules) {
      if (problem.graph().op_name(op).starts_with(prefix)) placement[op] = device;
    }
  }
  return placement;
}

struct Notes {
  std::vector<std::string> said;
  ExportNote listener() {
    return [this](const std::string& text) { said.push_back(text); };
  }
};

// Cells by rank and column; what a cell needs must be in a column before its own.
void expect_valid_schedule(const std::string& csv, int stages, int micro_batches) {
  std::map<std::string, std::size_t> column;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::size_t at = 0;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ','); ++at) {
      if (cell.empty()) continue;
      EXPECT_TRUE(column.emplace(cell, at).second) << cell << " is there twice";
    }
  }
  EXPECT_EQ(column.size(), static_cast<std::size_t>(2 * stages * micro_batches));
  for (int batch = 0; batch < micro_batches; ++batch) {
    for (int stage = 0; stage < stages; ++stage) {
      const auto at = [&](int of, char what) {
        return column.at(fmt::format("{}{}{}", of, what, batch));
      };
      if (stage > 0) {
        EXPECT_LT(at(stage - 1, 'F'), at(stage, 'F'));
        EXPECT_LT(at(stage, 'B'), at(stage - 1, 'B'));
      }
      EXPECT_LT(at(stage, 'F'), at(stage, 'B'));
    }
  }
}

TEST(DeviceMap, has_whole_modules_at_the_highest_level) {
  const auto problem = decoder(3, "2xp100");
  const Placement placement = placed(*problem, {{"layers.1", 1}, {"layers.2", 1}, {"head", 1}});
  Notes notes;
  const Json map = Json::parse(write_device_map(*problem, placement, notes.listener()));
  EXPECT_EQ(map,
            Json({{"embed", 0}, {"layers.0", 0}, {"layers.1", 1}, {"layers.2", 1}, {"head", 1}}));
  EXPECT_TRUE(notes.said.empty());
  EXPECT_EQ(Json::parse(write_device_map(*problem, placed(*problem, {}), notes.listener())),
            Json({{"", 0}}));
}

TEST(DeviceMap, calls_cpus_by_their_name_and_counts_gpus_alone) {
  const auto problem = decoder(1, "2xp100+cpu");
  const auto cpu = [&] {
    DeviceId device = 0;
    while (!problem->cluster().is_cpu(device)) ++device;
    return device;
  }();
  Placement placement = placed(*problem, {{"embed", cpu}});
  DeviceId last = problem->num_devices() - 1;
  while (problem->cluster().is_cpu(last)) --last;
  for (OpId op = 0; op < problem->num_ops(); ++op) {
    if (problem->graph().op_name(op).starts_with("head")) placement[op] = last;
    if (problem->graph().op_name(op).starts_with("layers")) placement[op] = last;
  }
  Notes notes;
  const Json map = Json::parse(write_device_map(*problem, placement, notes.listener()));
  EXPECT_EQ(map["embed"], "cpu");
  EXPECT_EQ(map["head"], 1);
  EXPECT_THAT(notes.said, ::testing::ElementsAre(HasSubstr("does not compute on a CPU")));
}

TEST(DeviceMap, a_module_whose_own_op_reads_from_two_devices_is_not_divided) {
  const auto problem = decoder(1, "2xp100");
  const Placement placement = placed(*problem, {{"layers.0.down", 1}});
  EXPECT_THAT(
      error_text([&] { write_device_map(*problem, placement, [](const std::string&) {}); }),
      HasSubstr("module 'layers.0' cannot be on several devices: its op 'layers.0/Add' reads "
                "'embed/Gather' from gpu0 and 'layers.0.down/MatMul' from gpu1"));
}

TEST(DeviceMap, modules_that_share_a_weight_stay_together) {
  const auto problem = decoder(1, "2xp100", true);
  const Placement placement = placed(*problem, {{"layers", 1}, {"head", 1}});
  EXPECT_THAT(
      error_text([&] { write_device_map(*problem, placement, [](const std::string&) {}); }),
      HasSubstr("parameter 'embed.weight' is shared by modules 'embed' on gpu0 and 'head' on "
                "gpu1"));
}

// As PyTorch's exporter leaves biases that are all zero.
TEST(DeviceMap, equal_biases_that_were_made_one_are_not_shared) {
  GraphBuilder builder("biases");
  const TensorSpec spec{.shape = {4, 4}, .dtype = DType::kFloat32};
  TensorId at = builder.add({.name = "x", .type = "input"}, {spec})[0];
  const TensorId bias = builder.add({.name = "a.bias", .type = "parameter", .module = "a"},
                                    {{.shape = {4}, .dtype = DType::kFloat32}})[0];
  for (const std::string module : {"a", "b", "c"}) {
    at = builder.add({.name = module + "/Add",
                      .type = "Add",
                      .inputs = {at, bias},
                      .flops = 16,
                      .module = module},
                     {spec})[0];
  }
  const auto problem =
      compile(std::make_shared<const Graph>(std::move(builder).build()),
              std::make_shared<const Cluster>(preset_cluster("2xp100")), CostMode::kAnalytic);
  Notes notes;
  const Json map =
      Json::parse(write_device_map(*problem, placed(*problem, {{"c", 1}}), notes.listener()));
  EXPECT_EQ(map, Json({{"a", 0}, {"b", 0}, {"c", 1}}));
  EXPECT_THAT(notes.said, ::testing::ElementsAre(HasSubstr("made one: 'a.bias'")));
}

TEST(DeviceMap, tables_of_no_module_are_brought_to_their_readers) {
  const auto map_of = [](const std::string& table_name) {
    GraphBuilder builder("shared table");
    const TensorSpec spec{.shape = {1, 4, 4}, .dtype = DType::kFloat32};
    const TensorId table = builder.add({.name = table_name, .type = "parameter"}, {spec})[0];
    TensorId at = builder.add({.name = "x", .type = "input"}, {spec})[0];
    for (const std::string module : {"layers.0", "layers.1"}) {
      at = builder.add({.name = module + "/Mul",
                        .type = "Mul",
                        .inputs = {at, table},
                        .flops = 16,
                        .module = module},
                       {spec})[0];
    }
    const auto problem =
        compile(std::make_shared<const Graph>(std::move(builder).build()),
                std::make_shared<const Cluster>(preset_cluster("2xp100")), CostMode::kAnalytic);
    return Json::parse(
        write_device_map(*problem, placed(*problem, {{"layers.1", 1}}), [](const auto&) {}));
  };
  const Json map = map_of("unsqueeze_16");
  EXPECT_EQ(map["layers.0"], 0);
  EXPECT_EQ(map["layers.1"], 1);
  EXPECT_THAT(error_text([&] { map_of("layers.0.table"); }), HasSubstr("is shared by modules"));
}

// Two layers on two devices read a table; "" is the model itself.
std::shared_ptr<const Problem> shared_table(const std::string& name, const std::string& module,
                                            bool trained) {
  GraphBuilder builder("shared table");
  const TensorSpec spec{.shape = {4, 4}, .dtype = DType::kFloat32};
  const TensorId table =
      builder.add({.name = name, .type = "parameter", .module = module}, {spec})[0];
  TensorId at = builder.add({.name = "x", .type = "input"}, {spec})[0];
  for (const std::string layer : {"layers.0", "layers.1"}) {
    at = builder.add({.name = layer + "/MatMul",
                      .type = "MatMul",
                      .inputs = {at, table},
                      .flops = 128,
                      .module = layer},
                     {spec})[0];
  }
  Graph graph = std::move(builder).build();
  if (trained) graph = training_step(graph);
  return compile(std::make_shared<const Graph>(std::move(graph)),
                 std::make_shared<const Cluster>(preset_cluster("2xp100")), CostMode::kAnalytic);
}

TEST(DeviceMap, whose_a_table_is_says_its_module_not_its_name) {
  const auto map_of = [](const std::string& name, const std::string& module) {
    const auto problem = shared_table(name, module, true);
    return error_text([&] {
      write_device_map(*problem, placed(*problem, {{"layers.1", 1}}), [](const auto&) {});
    });
  };
  EXPECT_EQ(map_of("table", ""), "");
  EXPECT_THAT(map_of("table", "layers.0"), HasSubstr("'table' is shared by modules"));
}

// Each stage has a copy, and nothing adds up what they learn.
TEST(TorchPipeline, stages_share_no_weight_that_is_trained) {
  const auto complaint = [](bool trained, DeviceId table_on) {
    const auto problem = shared_table("table", "", trained);
    return error_text([&] {
      const Json json = Json::parse(write_torch_pipeline(
          *problem, placed(*problem, {{"layers.1", 1}, {"table", table_on}}), [](const auto&) {}));
      ASSERT_EQ(json["stages"].size(), 2U);
      EXPECT_EQ(json["stages"][0]["modules"], Json({"layers.0", "table"}));
      EXPECT_EQ(json["split_spec"], Json({{"layers.1", "BEGINNING"}}));
    });
  };
  EXPECT_EQ(complaint(false, 0), "");
  EXPECT_EQ(complaint(false, 1), "");  // a table alone makes no stage
  EXPECT_THAT(complaint(true, 0), AllOf(HasSubstr("'table' is shared by modules"),
                                        HasSubstr("would train a copy of its own")));
}

TEST(PipelineSchedule, is_refused_where_pytorch_cannot_pass_tensors_over_stages) {
  GraphBuilder builder("skip");
  const TensorSpec spec{.shape = {4, 4}, .dtype = DType::kFloat32};
  TensorId at = builder.add({.name = "x", .type = "input"}, {spec})[0];
  TensorId first = at;
  for (int i = 0; i < 4; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    const TensorId weight =
        builder.add({.name = layer + ".weight", .type = "parameter", .module = layer}, {spec})[0];
    at = builder.add({.name = layer + "/MatMul",
                      .type = "MatMul",
                      .inputs = {at, weight},
                      .flops = 128,
                      .module = layer},
                     {spec})[0];
    if (i == 0) first = at;
  }
  builder.add({.name = "layers.3/Add",
               .type = "Add",
               .inputs = {at, first},
               .flops = 16,
               .module = "layers.3"},
              {spec});
  const auto problem =
      compile(std::make_shared<const Graph>(training_step(std::move(builder).build())),
              std::make_shared<const Cluster>(preset_cluster("4xp100")), CostMode::kAnalytic);
  const auto ignore = [](const std::string&) {};
  EXPECT_THAT(error_text([&] {
                write_pipeline_schedule(
                    *problem, placed(*problem, {{"layers.1", 1}, {"layers.3", 1}}), 2, ignore);
              }),
              AllOf(HasSubstr("1 tensor passes over a stage, and 4 stages are on 2 GPUs"),
                    HasSubstr("one stage a GPU")));
  expect_valid_schedule(
      write_pipeline_schedule(*problem,
                              placed(*problem, {{"layers.1", 1}, {"layers.2", 2}, {"layers.3", 3}}),
                              2, ignore),
      4, 2);
}

TEST(DeviceMap, taken_back_is_the_placement_that_it_was_made_of) {
  const auto problem = decoder(4, "2xp100");
  const Placement placement = placed(*problem, {{"layers.2", 1}, {"layers.3", 1}, {"head", 1}});
  const std::string map = write_device_map(*problem, placement, [](const std::string&) {});
  EXPECT_EQ(find_importer("device_map").read({.problem = *problem, .content = map}), placement);
}

TEST(TorchPipeline, begins_stages_at_modules) {
  const auto problem = decoder(4, "2xp100");
  const Placement placement = placed(*problem, {{"layers.2", 1}, {"layers.3", 1}, {"head", 1}});
  const Json json =
      Json::parse(write_torch_pipeline(*problem, placement, [](const std::string&) {}));
  EXPECT_EQ(json["split_spec"], Json({{"layers.2", "BEGINNING"}}));
  ASSERT_EQ(json["stages"].size(), 2U);
  EXPECT_EQ(json["stages"][1]["modules"], Json({"layers.2", "layers.3", "head"}));
  EXPECT_THAT(error_text([&] {
                write_torch_pipeline(*problem, placed(*problem, {}), [](const std::string&) {});
              }),
              HasSubstr("nothing to split"));
}

TEST(PipelineSchedule, is_one_forward_one_backward) {
  const auto problem = trained_decoder(4, "2xp100");
  const Placement placement = placed(*problem, {{"layers.2", 1}, {"layers.3", 1}, {"head", 1}});
  const auto ignore = [](const std::string&) {};
  expect_valid_schedule(write_pipeline_schedule(*problem, placement, 0, ignore), 2, 4);
  const std::string csv = write_pipeline_schedule(*problem, placement, 3, ignore);
  expect_valid_schedule(csv, 2, 3);
  EXPECT_EQ(csv.substr(0, 5), "0F0,0");
  // Devices that have two stages each.
  const Placement interleaved = placed(*problem, {{"layers.1", 1}, {"layers.3", 1}, {"head", 1}});
  expect_valid_schedule(write_pipeline_schedule(*problem, interleaved, 6, ignore), 4, 6);
}

TEST(PipelineSchedule, is_of_training_steps_alone) {
  const auto problem = decoder(4, "2xp100");
  const Placement placement = placed(*problem, {{"layers.2", 1}, {"layers.3", 1}, {"head", 1}});
  EXPECT_THAT(
      error_text([&] { write_pipeline_schedule(*problem, placement, 2, [](const auto&) {}); }),
      HasSubstr("no backward pass"));
}

TEST(TorchPipeline, says_what_becomes_of_tensors_that_pass_over_a_stage) {
  GraphBuilder builder("skip");
  const TensorSpec spec{.shape = {4, 4}, .dtype = DType::kFloat32};
  const auto add = [&](const std::string& module, std::vector<TensorId> inputs) {
    return builder.add({.name = module + "/Add",
                        .type = "Add",
                        .inputs = std::move(inputs),
                        .flops = 16,
                        .module = module},
                       {spec})[0];
  };
  const TensorId first = add("layers.0", {add("embed", {})});
  const TensorId third = add("layers.2", {add("layers.1", {first}), first});
  add("layers.3", {third, first});
  const auto problem =
      compile(std::make_shared<const Graph>(std::move(builder).build()),
              std::make_shared<const Cluster>(preset_cluster("3xp100")), CostMode::kAnalytic);
  const Placement placement = placed(*problem, {{"layers.1", 1}, {"layers.2", 2}, {"layers.3", 2}});
  Notes notes;
  write_torch_pipeline(*problem, placement, notes.listener());
  write_torchtitan_config(*problem, placement, notes.listener());
  EXPECT_THAT(notes.said, ::testing::Contains(AllOf(HasSubstr("1 tensor passes over a stage"),
                                                    HasSubstr("straight to where"))));
  EXPECT_THAT(notes.said, ::testing::Contains(HasSubstr("gets what the one before returns")));
}

TEST(Torchtitan, writes_a_table) {
  const auto problem = decoder(4, "2xp100");
  const auto ignore = [](const std::string&) {};
  EXPECT_EQ(
      write_torchtitan_config(
          *problem, placed(*problem, {{"layers.2", 1}, {"layers.3", 1}, {"head", 1}}), ignore),
      "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"1F1B\"\n"
      "module_fqns_per_model_part = [\n  [\"embed\",\"layers.0\",\"layers.1\"],\n"
      "  [\"layers.2\",\"layers.3\",\"head\"],\n]\n");
  EXPECT_THAT(error_text([&] {
                write_torchtitan_config(*problem, placed(*problem, {{"embed", 1}}), ignore);
              }),
              HasSubstr("expected stages in the order of the GPUs"));
}

TEST(DeepSpeed, divides_layers_evenly_or_not_at_all) {
  const auto problem = decoder(4, "2xp100");
  Notes notes;
  const Json json = Json::parse(write_deepspeed_config(
      *problem, placed(*problem, {{"layers.2", 1}, {"layers.3", 1}, {"head", 1}}), 4,
      notes.listener()));
  // Not "uniform", which would count the embedding and the head as layers.
  EXPECT_EQ(json["pipeline"], Json({{"stages", 2}}));
  EXPECT_THAT(notes.said, ::testing::Contains(HasSubstr("partition_method='type:CLASS'")));
  EXPECT_EQ(json["gradient_accumulation_steps"], 4);
  EXPECT_THAT(error_text([&] {
                write_deepspeed_config(*problem, placed(*problem, {{"layers.3", 1}, {"head", 1}}),
                                       4, notes.listener());
              }),
              HasSubstr("stages have 3, 1 layers"));
}

TEST(LlamaCpp, splits_layers_in_the_order_of_gpus) {
  const auto problem = decoder(4, "2xp100");
  const auto ignore = [](const std::string&) {};
  EXPECT_EQ(write_llama_cpp_flags(
                *problem,
                placed(*problem, {{"layers.1", 1}, {"layers.2", 1}, {"layers.3", 1}, {"head", 1}}),
                ignore),
            "--n-gpu-layers 999 --split-mode layer --tensor-split 1,4\n");
  EXPECT_EQ(write_llama_cpp_flags(*problem, placed(*problem, {{"layers.1", 1}}), ignore),
            "--n-gpu-layers 999 --override-tensor "
            "'blk\\.(0|2|3)\\.=CUDA0,blk\\.(1)\\.=CUDA1,output\\.weight=CUDA0'\n");
  EXPECT_THAT(error_text([&] {
                write_llama_cpp_flags(*problem, placed(*problem, {{"layers.1.up", 1}}), ignore);
              }),
              HasSubstr("layer 'layers.1' is divided"));
}

TEST(Megatron, lays_out_uneven_stages) {
  const auto problem = decoder(4, "2xp100");
  const auto ignore = [](const std::string&) {};
  EXPECT_EQ(
      write_megatron_flags(
          *problem, placed(*problem, {{"layers.2", 1}, {"layers.3", 1}, {"head", 1}}), ignore),
      "--pipeline-model-parallel-size 2\n");
  EXPECT_EQ(
      write_megatron_flags(*problem, placed(*problem, {{"layers.3", 1}, {"head", 1}}), ignore),
      "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|t*1L'\n");
  EXPECT_THAT(error_text([&] {
                write_megatron_flags(*problem, placed(*problem, {{"layers.1", 1}}), ignore);
              }),
              HasSubstr("gpu0 has layers that do not follow each other"));
}

TEST(Importers, ops_that_nothing_is_said_of_follow_what_they_read) {
  const auto problem = decoder(2, "2xp100");
  const Placement placement =
      find_importer("placement-by-name")
          .read({.problem = *problem,
                 .content = "op,device\nembed/Gather,gpu0\n\"layers.1.up/MatMul\",\"cuda:1\"\n"});
  const auto on = [&](std::string_view name) { return placement[*problem->graph().find_op(name)]; };
  EXPECT_EQ(on("layers.0/Add"), 0);
  EXPECT_EQ(on("layers.1.up.weight"), 1);
  EXPECT_EQ(on("layers.1/Add"), 1);
  EXPECT_EQ(on("head/MatMul"), 1);
}

TEST(Importers, say_what_is_wrong) {
  const auto problem = decoder(2, "2xp100");
  const auto complaint = [&](std::string_view format, const std::string& content) {
    return error_text(
        [&] { find_importer(format).read({.problem = *problem, .content = content}); });
  };
  EXPECT_THAT(complaint("device_map", R"({"embed": 7})"),
              HasSubstr("module 'embed': cluster '2xp100' has no device '7'"));
  EXPECT_THAT(complaint("device_map", R"({"embed": "disk"})"), HasSubstr("offloading to disk"));
  EXPECT_THAT(complaint("device_map", R"({"bert": 0})"), HasSubstr("names no module or op"));
  EXPECT_THAT(complaint("placement-by-name", "embed/Gather"),
              HasSubstr("line 1: expected NAME,DEVICE"));
  EXPECT_EQ(complaint("placement-by-name", "embed/Gather,gpu0\nembed/Gather,gpu1\n"),
            "op 'embed/Gather': is there twice");
  EXPECT_EQ(complaint("device_map", R"({"embed": 0, "embed": 1})"),
            "module 'embed': is there twice");
  EXPECT_EQ(complaint("device_map", R"({"embed": {"0": 1}})"),
            "module 'embed': expected a device's name or a GPU's number");
  EXPECT_THAT(error_text([] { find_importer("devicemap"); }),
              HasSubstr("did you mean 'device_map'?"));
}

TEST(OpTables, have_every_op_and_quote_what_needs_it) {
  GraphBuilder builder("<odd>");
  builder.add({.name = "a,\"b\"", .type = "input"}, {{.bytes = 8}});
  builder.add({.name = "<c>", .type = "Relu", .inputs = {0}, .flops = 4}, {{.bytes = 8}});
  const auto problem =
      compile(std::make_shared<const Graph>(std::move(builder).build()),
              std::make_shared<const Cluster>(preset_cluster("2xp100")), CostMode::kAnalytic);
  const Placement placement{0, 1};
  const std::string csv = write_ops_csv(*problem, placement, Simulator(problem).run(placement, {}));
  EXPECT_THAT(csv, HasSubstr("\n\"a,\"\"b\"\"\",input,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  const std::string xml = write_graphml(*problem, placement);
  EXPECT_THAT(xml, HasSubstr("<data key=\"name\">&lt;c&gt;</data>"));
  EXPECT_THAT(xml, HasSubstr("<edge source=\"n0\" target=\"n1\"><data key=\"bytes\">8</data>"
                             "<data key=\"crosses\">true</data></edge>"));
}

}  // namespace
}  // namespace emplace
