// What people ask before they buy or change something: what is in a model, which batch fits, what
// other hardware would bring and cost, and whether tensors should be divided instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/onnx_models.h"
#include "support/command.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;
using Json = nlohmann::json;

class WhatIf : public ::testing::Test {
 protected:
  CommandResult run(const std::string& arguments, int exit_code = 0) const {
    CommandResult result = folder_.emplace(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << "\n" << result.err;
    return result;
  }
  Json json(const std::string& arguments, int exit_code = 0) const {
    return Json::parse(run(arguments + " --json", exit_code).out);
  }

  // A layer of 1024 by 1024 for each of `batch` rows.
  void write_onnx() const {
    OnnxModelMaker model;
    model.input("x", {"batch", 1024});
    model.weights("layer.weight", {1024, 1024});
    model.node("MatMul", {"x", "layer.weight"}, {"h"}, "/layer/MatMul");
    model.node("Relu", {"h"}, {"y"}, "/act/Relu");
    model.output("y");
    folder_.write("m.onnx", model.bytes());
  }

  TemporaryFolder folder_;
};

TEST_F(WhatIf, info_of_an_onnx_file_says_which_dimensions_it_wants) {
  write_onnx();
  const std::string text = run("info m.onnx").out;
  EXPECT_THAT(text, HasSubstr("batch has no value, 1 was taken (--dim batch=N): axis 0 of x"));
  EXPECT_THAT(text, HasSubstr("parameters   1,048,576 (4.0 MiB)"));
  const Json given = json("info m.onnx --dim batch=8");
  EXPECT_EQ(given["samples"], 8);
  EXPECT_EQ(given["dims"][0]["given"], true);
  EXPECT_EQ(given["flops"], 2 * 8 * 1024 * 1024 + 8 * 1024);
  EXPECT_EQ(given["modules"][0]["name"], "layer");
  EXPECT_EQ(json("info m.onnx --batch 8 --training")["training"], true);
}

TEST_F(WhatIf, finds_the_largest_batch_that_fits) {
  write_onnx();
  // 4 MiB of weights and, while the product is made, two tensors of 4 KiB a sample.
  const Json found = json("place m.onnx -c 1xp100@12MiB --batch max");
  EXPECT_EQ(found["explanation"]["batches"]["largest"], 1024);
  EXPECT_EQ(found["fits"], true);
  EXPECT_GT(found["rates"]["samples_per_second"], 0);
  EXPECT_EQ(
      json("place m.onnx -c 1xp100@12MiB --batch 8..100")["explanation"]["batches"]["largest"],
      100);
  const CommandResult none = run("place m.onnx -c 1xp100@5MiB --batch 512..1024", 1);
  EXPECT_THAT(none.out, HasSubstr("What is short"));
  EXPECT_THAT(run("place m.onnx -c 1xp100 --batch 9..8", 2).err, HasSubstr("smaller number first"));
  EXPECT_THAT(run("simulate m.onnx p.json -c 1xp100 --batch max", 2).err, HasSubstr("--batch"));
}

TEST_F(WhatIf, the_placer_that_was_asked_for_finds_the_batch) {
  const auto batches = [&](const std::string& placer) {
    return json("place zoo:alexnet:training=false -c 2xp100@400MiB --batch max --evaluations 20 " +
                placer)["explanation"]["batches"];
  };
  const Json one = batches("-p single");
  for (const Json& probe : one["tried"]) {
    if (!probe["fits"]) continue;
    EXPECT_EQ(probe["how"], "placed by single");
  }
  EXPECT_LT(one["largest"], batches("")["largest"]) << "auto also splits";
}

TEST_F(WhatIf, place_says_when_dividing_tensors_is_faster) {
  const std::string model = "zoo:bert-base:layers=2,batch=64";
  const CommandResult divided = run("place " + model + " -c 4xa100-nvlink --time 1s");
  EXPECT_THAT(divided.out,
              AllOf(HasSubstr("Against dividing tensors"), HasSubstr("`emplace partition`"),
                    HasSubstr("samples/s"), HasSubstr("tokens/s"), HasSubstr("(MFU)")));
  EXPECT_THAT(run("place " + model + " -c 1xa100 --time 1s").out,
              Not(HasSubstr("Against dividing tensors")));
}

TEST_F(WhatIf, what_cannot_fit_comes_with_advice) {
  const std::string arguments = "place zoo:bert-base:layers=2 -c 2xp100@1GiB";
  const CommandResult text = run(arguments, 1);
  EXPECT_THAT(text.err, HasSubstr("no placement of"));
  EXPECT_THAT(text.out, AllOf(HasSubstr("What is short"), HasSubstr("a smaller batch"),
                              HasSubstr("--recompute")));
  EXPECT_FALSE(json(arguments, 1)["advice"].empty());
}

TEST_F(WhatIf, compares_clusters_with_their_costs) {
  const std::string arguments =
      "compare zoo:bert-base:layers=2,batch=64 -c 1xa100 -c 2xl4 --price a100=2.5,l4=0.7 --time 1s";
  const std::string text = run(arguments).out;
  EXPECT_THAT(text, AllOf(HasSubstr("fastest: "), HasSubstr("cheapest: "),
                          HasSubstr("a million samples"), HasSubstr("2xl4")));
  const Json rows = json(arguments)["clusters"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["cluster"], "1xa100");
  EXPECT_DOUBLE_EQ(rows[0]["rates"]["cost_per_hour"], 2.5);
  const double seconds = rows[0]["step_ns"].get<double>() / 1e9;
  EXPECT_NEAR(rows[0]["rates"]["cost_per_step"], 2.5 / 3600 * seconds, 1e-12);
  EXPECT_NEAR(rows[0]["rates"]["cost_per_million_samples"], 2.5 / 3600 * seconds / 64 * 1e6, 1e-9);
  EXPECT_THAT(run("compare zoo:alexnet -c 1xa100 -c 2xl4 --price v100=2", 2).err,
              HasSubstr("has no price"));
}

TEST_F(WhatIf, large_clusters_are_divided_too_however_short_the_search) {
  const Json rows = json("compare zoo:bert-base:layers=2 -c 2xl4 -c 8xl4 --time 0.05s")["clusters"];
  for (const Json& row : rows) EXPECT_TRUE(row.contains("in_parts")) << row["cluster"];
}

TEST_F(WhatIf, orders_of_ops_are_for_several_clusters_too) {
  const std::string arguments =
      "compare zoo:alexnet:batch=2 -c 1xa100 -c 2xl4 -p heft --schedulers ";
  EXPECT_EQ(json(arguments + "best")["clusters"].size(), 2U);
  EXPECT_THAT(run(arguments + "nonsense", 2).err, HasSubstr("nonsense"));
}

TEST_F(WhatIf, scales_what_the_cluster_has) {
  const std::string place = "place zoo:alexnet -c 1xp100 -p single ";
  const auto step = [&](const std::string& scale) {
    return json(place + scale)["step_ns"].get<std::int64_t>();
  };
  EXPECT_NEAR(static_cast<double>(step("--scale speed=2")), static_cast<double>(step("")) / 2, 100);
  EXPECT_LT(step("--scale compute=2"), step(""));
  EXPECT_EQ(step("--scale bandwidth=2"), step("")) << "nothing is sent";
  EXPECT_THAT(run(place + "--scale memory=0.01", 1).err, HasSubstr("fits"));
  EXPECT_THAT(run(place + "--scale size=2", 2).err, HasSubstr("expected RESOURCE=FACTOR"));
}

TEST_F(WhatIf, says_which_resource_would_bring_how_much) {
  const Json found = json("place zoo:alexnet -c 2xp100 --time 1s --sensitivity");
  const Json& list = found["explanation"]["sensitivities"]["list"];
  ASSERT_EQ(list.size(), 6U);
  EXPECT_LE(list[0]["step_ns"], list[5]["step_ns"]);
  EXPECT_LE(list[0]["step_ns"], found["step_ns"]);
}

TEST_F(WhatIf, partition_says_rates_of_every_way) {
  const std::string arguments =
      "partition zoo:bert-base:layers=1,batch=16 -c 2xa100-nvlink --method tofu --time 1s";
  EXPECT_THAT(run(arguments).out, AllOf(HasSubstr("samples/s"), HasSubstr("MFU")));
  const Json answer = json(arguments + " --price gpu=1");
  EXPECT_NEAR(answer["rates"]["samples_per_second"].get<double>(),
              16e9 / answer["step_ns"].get<double>(), 1e-3);
  EXPECT_DOUBLE_EQ(answer["rates"]["cost_per_hour"], 2);
  EXPECT_DOUBLE_EQ(answer["one_device"]["rates"]["cost_per_hour"], 1);
}

}  // namespace
}  // namespace emplace
