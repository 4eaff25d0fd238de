// What placements of modules and layers become for runtimes that know those, and what such runtimes
// say of a model, taken back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/simulator.h"

#include "io/device_map.h"
#include "io/importers.h"
#include "io/layer_flags.h"
#include "io/op_tables.h"
#include "io/placed_modules.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

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

TEST(DeviceMap, taken_back_is_the_placement_that_it_was_made_of) {
  const auto problem = decoder(4, "2xp100");
  const Placement placement = placed(*problem, {{"layers.2", 1}, {"layers.3", 1}, {"head", 1}});
  const std::string map = write_device_map(*problem, placement, [](const std::string&) {});
  EXPECT_EQ(find_importer("device_map").read({.problem = *problem, .content = map}), placement);
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

TEST(LlamaCpp, lists_gpus_that_have_layers_in_another_order) {
  const auto problem = decoder(4, "3xp100");
  Notes notes;
  const auto flags = [&](const std::vector<std::pair<std::string, DeviceId>>& rules) {
    return write_llama_cpp_flags(*problem, placed(*problem, rules), notes.listener());
  };
  EXPECT_EQ(flags({{"", 2}, {"layers.2", 0}, {"layers.3", 0}, {"head", 0}}),
            "--n-gpu-layers 999 --split-mode layer --device CUDA2,CUDA0 --tensor-split 2,3\n");
  EXPECT_EQ(flags({{"", 2}}), "--n-gpu-layers 999 --split-mode layer --tensor-split 0,0,5\n");
  EXPECT_THAT(notes.said, ::testing::Each(HasSubstr("a layer's cache where the layer is")));
}

// It puts the first layers on the CPU; others are moved, without their caches.
TEST(LlamaCpp, has_layers_on_a_cpu) {
  const auto problem = decoder(4, "2xp100+cpu");
  Notes notes;
  const auto flags = [&](const std::vector<std::pair<std::string, DeviceId>>& rules) {
    notes.said.clear();
    return write_llama_cpp_flags(*problem, placed(*problem, rules), notes.listener());
  };
  EXPECT_EQ(flags({{"", 2}, {"layers.2", 0}, {"layers.3", 1}, {"head", 1}}),
            "--n-gpu-layers 3 --split-mode layer --tensor-split 1,2\n");
  EXPECT_EQ(flags({{"", 2}}), "--n-gpu-layers 0\n");
  EXPECT_THAT(notes.said, ElementsAre(HasSubstr("a layer's cache where the layer is")));
  EXPECT_EQ(flags({{"layers.3", 2}}),
            "--n-gpu-layers 999 --override-tensor "
            "'blk\\.(3)\\.=CPU,blk\\.(0|1|2)\\.=CUDA0,output\\.weight=CUDA0'\n");
  EXPECT_THAT(notes.said, ElementsAre(HasSubstr("moves weights alone: caches are where")));
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

TEST(Importers, lines_may_have_a_title_and_comments) {
  GraphBuilder builder("odd");
  builder.add({.name = "#1", .type = "input"}, {{.bytes = 8}});
  builder.add({.name = "b", .type = "Relu", .inputs = {0}, .flops = 4}, {{.bytes = 8}});
  const auto problem =
      compile(std::make_shared<const Graph>(std::move(builder).build()),
              std::make_shared<const Cluster>(preset_cluster("2xp100")), CostMode::kAnalytic);
  Notes notes;
  const auto read = [&](const std::string& content) {
    return find_importer("placement-by-name")
        .read({.problem = *problem, .content = content, .note = notes.listener()});
  };
  EXPECT_EQ(read("NAME,gpu\n# what follows, is by hand\n#1,gpu1\nb,gpu0\n"), (Placement{1, 0}));
  EXPECT_EQ(read("# by hand\n\nNAME,gpu\n#1,gpu1\nb,gpu0\n"), (Placement{1, 0}));
  EXPECT_EQ(read("#1,gpu1\n"), (Placement{1, 1}));
  EXPECT_TRUE(notes.said.empty());
  // A name that is wrong is no title.
  EXPECT_EQ(read("c,gpu0\nb,gpu1\n"), (Placement{1, 1}));
  EXPECT_THAT(notes.said, ElementsAre(HasSubstr("nothing of the name 'c'")));
  EXPECT_THAT(error_text([&] { read("b,gpu1\nNAME,gpu\n"); }), HasSubstr("no device 'gpu'"));
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
