// What pipelines of modules become for the runtimes that train them.
#include "io/pipeline_exports.h"

#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/placed_modules.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

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

std::vector<int> ranks_of(const Json& pipeline) {
  std::vector<int> ranks;
  for (const Json& stage : pipeline["stages"]) ranks.push_back(stage["rank"]);
  return ranks;
}

// PyTorch sends to stage i by rank i % ranks, and takes no more ranks than stages, so which GPU has
// the first stage must not matter.
TEST(TorchPipeline, numbers_ranks_by_their_first_stages) {
  const auto problem = trained_decoder(4, "4xp100");
  Notes notes;
  const auto pipeline = [&](const Placement& placement) {
    return Json::parse(write_torch_pipeline(*problem, placement, notes.listener()));
  };
  const auto halves = [&](DeviceId first, DeviceId second) {
    return placed(*problem,
                  {{"", first}, {"layers.2", second}, {"layers.3", second}, {"head", second}});
  };
  const std::string straight = write_pipeline_schedule(*problem, halves(0, 1), 3, notes.listener());
  for (const auto& [first, second] : {std::pair<DeviceId, DeviceId>{1, 0}, {3, 1}}) {
    const Json json = pipeline(halves(first, second));
    EXPECT_EQ(ranks_of(json), (std::vector<int>{0, 1}));
    EXPECT_EQ(json["stages"][0]["device"], fmt::format("gpu{}", first));
    EXPECT_EQ(write_pipeline_schedule(*problem, halves(first, second), 3, notes.listener()),
              straight);
  }
  EXPECT_THAT(notes.said, ::testing::Each(Not(HasSubstr("PyTorch's own schedules"))));
  // 0, 1, 2, 1: the last stage is where only a schedule that is loaded has it.
  EXPECT_EQ(ranks_of(pipeline(placed(
                *problem, {{"layers.1", 1}, {"layers.2", 2}, {"layers.3", 1}, {"head", 1}}))),
            (std::vector<int>{0, 1, 2, 1}));
  EXPECT_THAT(notes.said, ::testing::Contains(AllOf(HasSubstr("stage 3 is on rank 1"),
                                                    HasSubstr("have it on rank 0"),
                                                    HasSubstr("load the CSV"))));
}

TEST(TorchPipeline, is_of_devices_of_one_sort) {
  const auto ignore = [](const std::string&) {};
  const auto cpus = trained_decoder(4, "2xcpu");
  const auto halves = [](const Problem& problem, DeviceId second) {
    return placed(problem, {{"layers.2", second}, {"layers.3", second}, {"head", second}});
  };
  EXPECT_EQ(ranks_of(Json::parse(write_torch_pipeline(*cpus, halves(*cpus, 1), ignore))),
            (std::vector<int>{0, 1}));
  expect_valid_schedule(write_pipeline_schedule(*cpus, halves(*cpus, 1), 2, ignore), 2, 2);
  const auto mixed = trained_decoder(4, "1xp100+cpu");
  const auto expected = AllOf(HasSubstr("stage 'embed' is on gpu0 and stage 'layers.2' on cpu0"),
                              HasSubstr("sends between GPUs, or CPUs"));
  EXPECT_THAT(error_text([&] { write_torch_pipeline(*mixed, halves(*mixed, 1), ignore); }),
              expected);
  EXPECT_THAT(error_text([&] { write_pipeline_schedule(*mixed, halves(*mixed, 1), 2, ignore); }),
              expected);
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
  // Of GPUs in another order, too; which is which is DeepSpeed's to say.
  write_deepspeed_config(*problem,
                         placed(*problem, {{"embed", 1}, {"layers.0", 1}, {"layers.1", 1}}), 4,
                         notes.listener());
  EXPECT_THAT(notes.said, ::testing::Contains(HasSubstr("stages are on GPUs 1, 0")));
}

// Half of layer 1 on each side is not one layer for each.
TEST(DeepSpeed, a_layer_is_whole_in_a_stage) {
  GraphBuilder builder("chain");
  const TensorSpec spec{.shape = {8, 4}, .dtype = DType::kFloat32};
  TensorId at = builder.add({.name = "x", .type = "input"}, {spec})[0];
  for (int i = 0; i < 3; ++i) {
    for (const char* half : {"fc1", "fc2"}) {
      const std::string module = fmt::format("layers.{}.{}", i, half);
      at = builder.add({.name = module + "/MatMul",
                        .type = "MatMul",
                        .inputs = {at},
                        .flops = 128,
                        .module = module},
                       {spec})[0];
    }
  }
  const auto problem =
      compile(std::make_shared<const Graph>(std::move(builder).build()),
              std::make_shared<const Cluster>(preset_cluster("2xp100")), CostMode::kAnalytic);
  EXPECT_EQ(error_text([&] {
              write_deepspeed_config(*problem,
                                     placed(*problem, {{"layers.1.fc2", 1}, {"layers.2", 1}}), 2,
                                     [](const std::string&) {});
            }),
            "layer 'layers.1' is divided between stages 0 and 1; expected layers that are kept "
            "whole");
}

}  // namespace
}  // namespace emplace
