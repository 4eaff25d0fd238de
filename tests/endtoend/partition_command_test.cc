// `emplace partition MODEL`, as a person runs it.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "tensor/methods/all.h"

#include "support/captures.h"
#include "support/command.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TemporaryFolder;
using Json = nlohmann::json;

constexpr const char* kModel = "zoo:stacked-rnn:layers=2,hidden=256,sequence=3,batch=16";

TEST(PartitionCommand, prints_a_comparison_and_a_verdict) {
  TemporaryFolder folder;
  const CommandResult result = folder.emplace(std::string("partition ") + kModel +
                                              " --cluster 4xp100 --time 2s -o plan.json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"search", "tofu", "optcnn", "data-parallel", "all-row", "equal-chop",
                           "spartan", "one device", "placement", "gpu3", "wrote plan.json"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  const Json plan = Json::parse(folder.read("plan.json"));
  EXPECT_EQ(plan["format"], "emplace.partition/1");
  EXPECT_EQ(plan["factors"], Json({2, 2}));
  EXPECT_EQ(plan["devices"].size(), 4U);
  EXPECT_EQ(plan["tensors"]["layer.0.weight_hh"]["split"].size(), 2U);
  EXPECT_EQ(plan["ops"]["layer.0.step.0.Gemm"]["strategy"].size(), 2U);
}

// Our search is no slower than any other method.
TEST(PartitionCommand, the_search_is_the_best_of_them) {
  TemporaryFolder folder;
  const CommandResult result = folder.emplace(std::string("partition ") + kModel +
                                              " --cluster 4xp100 --evaluations 12 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["compared"].size() + 1, all_partition_methods().list().size());
  for (const Json& other : json["compared"]) {
    EXPECT_LE(json["step_ns"].get<std::int64_t>(), other["step_ns"].get<std::int64_t>())
        << other["how"];
  }
}

// Also the placement of whole ops beside it.
TEST(PartitionCommand, the_same_seed_and_evaluations_give_the_same_plan) {
  TemporaryFolder folder;
  std::set<std::string> answers, plans;
  for (int run = 0; run < 2; ++run) {
    const CommandResult result =
        folder.emplace(std::string("partition ") + kModel +
                       " --cluster 4xp100 --evaluations 6 --seed 3 -o plan.json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(HasSubstr("The plan: Among "), HasSubstr("No division among")));
    answers.insert(result.out);
    plans.insert(folder.read("plan.json"));
  }
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(plans.size(), 1U);
}

TEST(PartitionCommand, says_what_captures_do_not) {
  TemporaryFolder folder;
  const auto run = [&](const std::string& capture) {
    const CommandResult result = folder.emplace("partition " + capture_path(capture) +
                                                " --cluster 2xv100 --time 5s --method fsdp");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_THAT(run("vgg16-b32"), HasSubstr("the graph does not say their attributes"));
  EXPECT_THAT(run("bert-tiny"), AllOf(Not(HasSubstr("Not divided")), HasSubstr("ZeRO stage 3")));
}

// As on one example: everybody computes everything.
TEST(PartitionCommand, says_that_a_division_is_copies) {
  TemporaryFolder folder;
  const CommandResult result = folder.emplace(
      "partition zoo:bert-base:layers=1,batch=1 --cluster 8xl4 --time 10s "
      "--method data-parallel");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("Copies: "), HasSubstr("with data-parallel 8.0")));
}

TEST(PartitionCommand, the_divided_graph_simulates_to_the_same_step) {
  TemporaryFolder folder;
  const CommandResult result = folder.emplace(
      std::string("partition ") + kModel +
      " --method tofu --cluster 4xp100 --graph divided.json.gz --placement where.json --trace "
      "timeline.json --time 1s --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const CommandResult simulated =
      folder.emplace("simulate divided.json.gz where.json --cluster 4xp100 --json");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_EQ(Json::parse(simulated.out)["step_ns"], Json::parse(result.out)["step_ns"]);
  EXPECT_FALSE(folder.read("timeline.json").empty());
}

// A tiny model fits one device and is as fast there.
TEST(PartitionCommand, says_that_it_does_not_pay) {
  TemporaryFolder folder;
  const CommandResult result = folder.emplace(
      "partition zoo:stacked-rnn:layers=1,hidden=32,sequence=2,batch=4 --cluster 4xp100 --time 1s");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Partitioning does not pay: the step fits gpu0 alone"));
}

TEST(PartitionCommand, says_what_is_short_where_nothing_fits) {
  TemporaryFolder folder;
  folder.write("small.yaml", R"(format: emplace.cluster/1
name: small
devices: [{name: gpu, kind: p100, memory: 1MiB, count: 2}]
links: [{bandwidth: 10GB/s}]
)");
  const CommandResult result =
      folder.emplace(std::string("partition ") + kModel + " --cluster small.yaml --time 1s");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Nothing fits"));
}

double processor_seconds_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Operators can be cut among 32 devices in thousands of ways.
TEST(PartitionCommand, many_devices_take_little_longer_than_the_time) {
  TemporaryFolder folder;
  const double before = processor_seconds_of_children();
  const CommandResult result =
      folder.emplace("partition zoo:bert-base --cluster 32xp100 --time 1s --method data-parallel");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(processor_seconds_of_children() - before, 2.5);
}

// A tenth, and what reading the model takes.
TEST(PartitionCommand, searches_keep_to_the_time) {
  TemporaryFolder folder;
  for (const char* cluster : {"8xv100-nvlink", "4x(8xa100-nvlink)@25GB/s"}) {
    const double before = processor_seconds_of_children();
    const CommandResult result = folder.emplace(
        std::string("partition zoo:bert-base --time 4s --threads 1 --cluster \"") + cluster + "\"");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LT(processor_seconds_of_children() - before, 4 * 1.1 + 0.3) << cluster;
  }
}

// Where the first plan for all is slow, there is an answer from one machine in little time.
TEST(PartitionCommand, one_machine_is_tried_early) {
  TemporaryFolder folder;
  const CommandResult result = folder.emplace(
      "partition zoo:bert-base:layers=4,batch=24 --evaluations 3 --cluster "
      "\"2x(2xa100-nvlink)@0.01GB/s\"");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("(--workers 2)"), HasSubstr("search on 2 devices"),
                                HasSubstr("each of 2 machines does the same")));
}

// A thousand would each send to a thousand.
TEST(PartitionCommand, a_divided_graph_that_is_too_large_is_refused) {
  TemporaryFolder folder;
  const CommandResult result =
      folder.emplace("partition zoo:gpt2-medium --cluster 1000xp100 --time 1s");
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, AllOf(HasSubstr("divided among 1000 devices"), HasSubstr("4000000 ops"),
                                HasSubstr("expected fewer devices")));
}

// The links of that machine are of two speeds, which makes it no two machines.
TEST(PartitionCommand, measured_collectives_count_by_their_devices) {
  TemporaryFolder folder;
  const auto step = [&](const std::string& more) {
    const CommandResult result = folder.emplace(
        std::string("partition ") + kModel +
        " --cluster 8xv100-nvlink --evaluations 1 --json --method data-parallel" + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  };
  folder.write("eight.csv", "op,devices,bytes,microseconds\nall-reduce,8,100000,90000\n");
  folder.write("three.csv", "op,devices,bytes,microseconds\nall-reduce,3,100000,90000\n");
  const Json plain = step("");
  EXPECT_FALSE(plain.contains("unmeasured_devices"));
  const Json eight = step(" --collectives eight.csv");
  EXPECT_GT(eight["step_ns"].get<std::int64_t>(),
            plain["step_ns"].get<std::int64_t>() + 80'000'000);
  const Json three = step(" --collectives three.csv");
  EXPECT_FALSE(three["unmeasured_devices"].empty());
  const CommandResult text =
      folder.emplace(std::string("partition ") + kModel +
                     " --cluster 8xv100-nvlink --evaluations 1 --collectives three.csv");
  EXPECT_THAT(text.out, HasSubstr("were not measured"));
  EXPECT_THAT(text.out, Not(HasSubstr("what it has to send")));
}

TEST(PartitionCommand, says_once_what_it_is_doing) {
  TemporaryFolder folder;
  const CommandResult result = folder.emplace(
      "partition zoo:wide-resnet:layers=152,width=10 --cluster 8xv100-nvlink --time 8s");
  const std::string phase = "searching for a partition\n";
  const auto first = result.err.find(phase);
  ASSERT_NE(first, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(phase, first + 1), std::string::npos) << result.err;
}

TEST(PartitionCommand, threads_do_not_change_what_evaluations_limit) {
  TemporaryFolder folder;
  std::set<std::string> plans;
  for (const char* threads : {" --threads 1", " --threads 3"}) {
    const CommandResult result = folder.emplace(std::string("partition ") + kModel +
                                                " --cluster 4xp100 --evaluations 5 -o -" + threads);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    plans.insert(result.out);
  }
  EXPECT_EQ(plans.size(), 1U);
}

TEST(PartitionCommand, refuses_what_it_cannot_do) {
  TemporaryFolder folder;
  const auto error = [&](const std::string& arguments) {
    const CommandResult result = folder.emplace("partition " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.out, IsEmpty());
    return result.err;
  };
  const std::string model(kModel);
  EXPECT_THAT(error(""), HasSubstr("model is required"));
  EXPECT_THAT(
      error(model + " --cluster 4xp100 --method toffu"),
      AllOf(HasSubstr("unknown partitioning method 'toffu'"), HasSubstr("did you mean 'tofu'")));
  EXPECT_THAT(error(model + " --cluster 1xp100"), HasSubstr("has one device"));
  EXPECT_THAT(error(model + " --cluster 2xp100 --workers 4"), HasSubstr("4 workers"));
  EXPECT_THAT(error(model + " --cluster 2xp100 --pin \"layer.0=gpu0\""),
              HasSubstr("pins and what is forbidden are for whole ops"));
}

}  // namespace
}  // namespace emplace
