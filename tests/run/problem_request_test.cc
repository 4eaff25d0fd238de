#include "run/problem_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kChain = R"({"format": "emplace.graph/1", "name": "chain",
  "tensors": [{"bytes": 4}, {"bytes": 4}],
  "ops": [
    {"name": "a", "type": "mm", "inputs": [], "outputs": [0], "time_us": {"gpu": 100}},
    {"name": "b", "type": "mm", "inputs": [0], "outputs": [1], "time_us": {"gpu": 50}}]})";

constexpr const char* kPair = R"(format: emplace.cluster/1
name: pair
kinds: {gpu: {peak_flops: {float32: 1e12}, memory_bandwidth: 100GB/s, memory: 1GiB, launch_us: 1}}
devices: [{name: d, kind: gpu, count: 2}]
links: [{bandwidth: 1GB/s}]
)";

class Request : public ::testing::Test {
 protected:
  Request() {
    request_.model = folder_.write("chain.json", kChain);
    request_.cluster = folder_.write("pair.yaml", kPair);
  }

  std::string error() const {
    return error_text([&] { load_problem(request_); });
  }
  std::string placement_error(const std::string& text, const std::string& scheduler = {}) const {
    const auto problem = load_problem(request_);
    const std::string path = folder_.write("p.json", text);
    return error_text([&] { load_placement(path, *problem, scheduler); });
  }

  testing::TemporaryFolder folder_;
  ProblemRequest request_;
};

TEST_F(Request, becomes_a_problem_that_knows_how_it_was_compiled) {
  request_.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "b=d1")};
  request_.fuse = true;
  const auto problem = load_problem(request_);
  EXPECT_EQ(problem->num_devices(), 2);
  EXPECT_EQ(problem->duration(0, 0), 100'000);
  EXPECT_FALSE(problem->allowed(problem->group_of(1), 0));
  EXPECT_TRUE(problem->compile_options().fuse);
  EXPECT_EQ(problem->compile_options().rules.size(), 1U);
}

TEST_F(Request, needs_a_cluster_where_the_model_brings_none) {
  request_.cluster.clear();
  EXPECT_THAT(error(), HasSubstr("the cluster is missing: expected a cluster file or a preset"));
  request_.model = EMPLACE_SOURCE_DIR "/tests/data/dnn_partitioning/diamond.json";
  EXPECT_EQ(load_problem(request_)->num_devices(), 3) << "this one does";
}

TEST_F(Request, names_the_file_that_is_wrong) {
  request_.model = folder_.path("none.json");
  EXPECT_THAT(error(), HasSubstr("none.json"));
  request_.model = folder_.write("bad.json", "{");
  EXPECT_THAT(error(), HasSubstr("bad.json"));
  request_.model = folder_.path("chain.json");
  request_.cluster = "4xq100";
  EXPECT_THAT(error(), HasSubstr("4xq100"));
  request_.cluster = folder_.path("pair.yaml");
  request_.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "c=d0")};
  EXPECT_THAT(error(), AllOf(HasSubstr("chain.json"), HasSubstr("'c'")));
}

TEST_F(Request, of_measured_times_alone_is_refused_where_one_is_missing) {
  request_.cost = CostMode::kMeasured;
  EXPECT_EQ(error(), "");
  request_.cluster = "2xp100";
  EXPECT_THAT(error(), AllOf(HasSubstr("chain.json"), HasSubstr("a, b"), HasSubstr("p100")));
}

TEST_F(Request, kinds_of_another_file_replace_those_of_the_cluster) {
  request_.cost = CostMode::kAnalytic;
  const Nanoseconds before = load_problem(request_)->duration(0, 0);
  std::string slow = kPair;
  slow.replace(slow.find("launch_us: 1}"), 13, "launch_us: 900}");
  request_.kinds = folder_.write("slow.yaml", slow);
  EXPECT_GT(load_problem(request_)->duration(0, 0), before);
  request_.cluster = "2xp100";
  EXPECT_THAT(error(), HasSubstr("slow.yaml: has no kind that a device of '2xp100' is of"));
}

TEST_F(Request, settings_of_a_training_step_need_one) {
  request_.training.recompute = {"encoder"};
  EXPECT_THAT(error(), AllOf(HasSubstr("recomputing encoder is for a training step"),
                             HasSubstr("chain.json")));
  request_.training = {.colocate_gradients = true};
  EXPECT_THAT(error(), HasSubstr("colocating gradients is for a training step"));
  request_.training = {.optimizer = "adam"};
  EXPECT_THAT(error(), HasSubstr("optimizer adam is for a training step"));
  request_.model = "zoo:alexnet:training=false,batch=1";
  EXPECT_THAT(error(), HasSubstr("'zoo:alexnet:training=false,batch=1' is a forward pass"));
  request_.model = "zoo:alexnet:batch=1";
  request_.cluster = "2xp100";
  EXPECT_EQ(error(), "");
  request_.training.optimizer = "adamw";
  EXPECT_THAT(error(), HasSubstr("adamw"));
}

TEST_F(Request, recomputation_can_be_asked_for_once_and_of_steps_that_are_made) {
  EXPECT_FALSE(request_.could_recompute());
  request_.training.training = true;
  EXPECT_TRUE(request_.could_recompute());
  request_.training.recompute = {"encoder"};
  EXPECT_FALSE(request_.could_recompute());
  EXPECT_TRUE((ProblemRequest{.model = "zoo:alexnet", .cluster = "2xp100"}.could_recompute()));
}

TEST_F(Request, placement_has_the_order_that_was_asked_for) {
  const auto problem = load_problem(request_);
  const std::string with = folder_.write(
      "with.json", R"({"assignment": {"a": "d0", "b": "d1"}, "priorities": {"a": 3, "b": 7}})");
  const std::string without =
      folder_.write("without.json", R"({"assignment": {"a": "d0", "b": "d1"}})");
  EXPECT_THAT(load_placement(with, *problem).placement, ElementsAre(0, 1));
  EXPECT_THAT(load_placement(with, *problem).schedule.priorities, ElementsAre(3, 7));
  EXPECT_TRUE(load_placement(without, *problem).schedule.fifo());
  EXPECT_TRUE(load_placement(with, *problem, "fifo").schedule.fifo());
  EXPECT_THAT(load_placement(without, *problem, "given").schedule.priorities, ElementsAre(0, 0));
  EXPECT_FALSE(load_placement(without, *problem, "pct").schedule.fifo());
}

TEST_F(Request, bad_placements_are_named) {
  EXPECT_THAT(placement_error(R"({"assignment": {"a": "d0"}})"),
              AllOf(HasSubstr("p.json"), HasSubstr("op 'b'")));
  EXPECT_THAT(placement_error(R"({"assignment": {"a": "d0", "b": "d9"}})"), HasSubstr("d9"));
  EXPECT_THAT(placement_error(R"({"assignment": {"a": "d0", "b": "d0"}})", "lifo"),
              HasSubstr("unknown scheduler 'lifo'"));
}

}  // namespace
}  // namespace emplace
