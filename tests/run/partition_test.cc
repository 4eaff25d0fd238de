#include "run/partition.h"

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "cluster/presets.h"

#include "run/problem_request.h"
#include "run/whole_ways.h"
#include "support/fork.h"

namespace emplace {
namespace {

TEST(QuickPartition, is_what_its_methods_make_of_the_model) {
  const auto on = [](const std::string& cluster, const CompileOptions& options = {}) {
    Budget budget;
    budget.seconds = 5;
    const ProblemRequest request{
        .model = "zoo:stacked-rnn:layers=1,hidden=512,sequence=2,batch=256", .cluster = cluster};
    const Model model = load_model(request);
    return quick_partition(compile(model.graph, read_cluster(cluster), options), budget);
  };
  const auto two = on("2xa100-nvlink");
  ASSERT_TRUE(two);
  EXPECT_TRUE(two->fits);
  EXPECT_GT(two->step, 0);
  EXPECT_TRUE(two->name == "tofu" || two->name == "data-parallel");
  EXPECT_FALSE(on("1xa100"));
  EXPECT_FALSE(on("2xa100-nvlink", {.fuse = true})) << "for whole ops";
}

std::shared_ptr<const Problem> problem_on(const std::string& model, const std::string& cluster) {
  return load_problem({.model = model, .cluster = cluster});
}

// The gradients of all weights through a slow network take longer than twice the work.
TEST(QuickPartition, does_without_slow_links) {
  const std::string model = "zoo:stacked-rnn:layers=1,hidden=512,sequence=2,batch=256";
  Budget budget;
  budget.seconds = 5;
  const auto slow = quick_partition(problem_on(model, "2x(2xa100-nvlink)@0.1GB/s"), budget);
  const auto one = quick_partition(problem_on(model, "2xa100-nvlink"), budget);
  ASSERT_TRUE(slow && one);
  EXPECT_EQ(slow->step, one->step);
  EXPECT_EQ(slow->devices(), 2);
  EXPECT_EQ(slow->name, one->name + " on 2 devices");
}

// The slow machine's part of the examples is too small for its two, so that both machines do all
// of them.
TEST(QuickPartition, is_found_where_machines_of_unequal_speed_do_the_same) {
  ClusterSpec spec{.name = "unequal", .kinds = {}, .devices = {}, .links = {}};
  for (const char* name : {"a0", "a1", "b0", "b1"}) {
    spec.devices.push_back(
        {.name = name, .kind = name[0] == 'a' ? "a100" : "k80", .memory = 8LL << 30});
  }
  spec.links.push_back({.bandwidth = 100'000'000});
  for (const char* all : {"a*", "b*"}) {
    spec.links.push_back({.from = all, .to = all, .bandwidth = 100'000'000'000});
  }
  const Model model = load_model({.model = "zoo:bert-base:layers=1,batch=8", .cluster = ""});
  Budget budget;
  budget.seconds = 5;
  const auto way = quick_partition(
      compile(model.graph, std::make_shared<const Cluster>(std::move(spec))), budget);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->devices(), 2);
  EXPECT_EQ(way->peaks[2], 0) << "the slow ones are left out";
}

TEST(Partition, says_that_fewer_devices_are_faster) {
  PartitionOptions options;
  options.budget.seconds = 20;
  options.method = "data-parallel";
  const PartitionAnswer answer = find_partition(
      problem_on("zoo:bert-base:layers=1,batch=24", "2x(2xa100-nvlink)@0.001GB/s"), options);
  ASSERT_TRUE(answer.on_fewer);
  EXPECT_LT(answer.on_fewer->step, answer.chosen.step);
  EXPECT_EQ(answer.on_fewer->devices(), 2);
  EXPECT_EQ(&answer.best_in_parts(), &*answer.on_fewer);
}

constexpr const char* kSlowMachines = "2x(2xa100-nvlink)@0.001GB/s";

// Where the first plan for all is slow, one machine is searched as it would be by itself.
TEST(Partition, searches_on_one_machine_where_links_between_them_are_slow) {
  const auto problem = problem_on("zoo:bert-base:layers=1,batch=24", kSlowMachines);
  PartitionOptions options;
  options.budget.evaluations = 8;
  const PartitionAnswer answer = find_partition(problem, options);
  options.workers = 2;
  const PartitionAnswer alone = find_partition(problem, options);
  ASSERT_TRUE(answer.on_fewer);
  EXPECT_EQ(answer.on_fewer->step, alone.chosen.step);
  EXPECT_EQ(&answer.best_in_parts(), &*answer.on_fewer);
  EXPECT_FALSE(answer.fewer_left_out);
  EXPECT_FALSE(alone.on_fewer) << "which was not asked for";
}

// Both machines do the same, so that one is as fast.
TEST(Partition, says_that_machines_do_the_same) {
  PartitionOptions options;
  options.budget.evaluations = 3;
  const PartitionAnswer answer =
      find_partition(problem_on("zoo:bert-base:layers=1,batch=24", kSlowMachines), options);
  EXPECT_EQ(answer.chosen.alike, 2);
  EXPECT_NEAR(answer.chosen.copies, 2, 0.2);
  ASSERT_TRUE(answer.on_fewer);
  EXPECT_EQ(answer.on_fewer->devices(), 2);
  EXPECT_LE(answer.on_fewer->step, answer.chosen.step);
  EXPECT_EQ(answer.on_fewer->alike, 1);
}

// Data parallelism on all is tried first to see whether one machine may do better.
TEST(Partition, the_course_is_of_the_method_alone) {
  PartitionOptions options;
  options.method = "tofu";
  options.budget.evaluations = 3;
  const auto problem = problem_on("zoo:bert-base:layers=1,batch=24", kSlowMachines);
  const PartitionAnswer answer = find_partition(problem, options);
  EXPECT_TRUE(answer.course.points.empty()) << "it evaluates nothing";
  EXPECT_EQ(std::count_if(answer.others.begin(), answer.others.end(),
                          [](const WayToRun& way) { return way.name == "data-parallel"; }),
            1);
}

class PlacementBeside : public ::testing::Test {
 protected:
  PlacementBeside() { budget_.seconds = 60; }
  double elapsed() const { return clock_.elapsed_seconds(); }

  const std::shared_ptr<const Problem> problem_ =
      problem_on("zoo:bert-base:layers=1,batch=24", "2xl4");
  Budget budget_;
  Budget clock_;
};

TEST_F(PlacementBeside, is_stopped_by_whoever_leaves_without_it) {
  { const PlacedBeside placed(problem_, budget_, 1); }
  EXPECT_LT(elapsed(), 30);
}

TEST_F(PlacementBeside, is_what_there_is_when_cancelled) {
  std::atomic<bool> cancelled{false};
  budget_.cancelled = &cancelled;
  PlacedBeside placed(problem_, budget_, 1);
  cancelled = true;
  EXPECT_GT(placed.take().step, 0);
  EXPECT_LT(elapsed(), 30);
}

// Two threads: the one places whole ops while the other searches.
TEST(Partition, places_whole_ops_beside_the_search) {
  PartitionOptions options;
  options.budget.seconds = 0.5;
  options.budget.threads = 2;
  const PartitionAnswer answer =
      find_partition(problem_on("zoo:bert-base:layers=1,batch=24", "2xl4"), options);
  EXPECT_TRUE(answer.placed.fits);
  EXPECT_GT(answer.placed.step, 0);
}

TEST(Partition, fewer_devices_are_the_fastest) {
  PartitionOptions options;
  options.method = "data-parallel";
  options.workers = 2;
  for (const char* cluster : {"2xa100+2xk80", "2xk80+2xa100"}) {
    const auto answer =
        find_partition(problem_on("zoo:bert-base:layers=1,batch=24", cluster), options);
    for (const DeviceId device : answer.devices()) {
      EXPECT_EQ(answer.cluster().device(device).kind, "a100") << cluster;
    }
  }
}

TEST(Partition, a_search_is_no_worse_than_what_it_is_compared_with) {
  PartitionOptions options;
  options.budget.seconds = 0.1;
  const PartitionAnswer answer =
      find_partition(problem_on("zoo:bert-base:layers=1,batch=24", "8xl4"), options);
  EXPECT_EQ(answer.method, "search");
  EXPECT_EQ(answer.chosen.step, answer.outcome.value.step);
  EXPECT_FALSE(answer.on_fewer) << "all are linked alike";
  for (const WayToRun& other : answer.others) {
    if (!other.fits) continue;
    EXPECT_LE(answer.chosen.step, other.step) << other.name;
  }
}

// Data parallelism does not fit, other divisions do.
TEST(Partition, the_best_in_parts_is_the_best_of_all_that_are_compared) {
  PartitionOptions options;
  options.budget.seconds = 20;
  options.method = "data-parallel";
  ClusterSpec spec = preset_cluster("4xv100-nvlink");
  for (Device& device : spec.devices) device.memory = 1LL << 30;
  const Model model = load_model(
      {.model = "zoo:stacked-rnn:layers=2,hidden=4096,sequence=2,batch=64", .cluster = ""});
  const auto problem = compile(model.graph, std::make_shared<const Cluster>(std::move(spec)));
  const PartitionAnswer answer = find_partition(problem, options);
  EXPECT_FALSE(answer.chosen.fits);
  EXPECT_TRUE(answer.best_in_parts().fits);
  EXPECT_NE(answer.best_in_parts().name, "data-parallel");
}

TEST(Partition, without_time_there_is_a_plan_and_little_else) {
  PartitionOptions options;
  options.budget.seconds = 0;
  const PartitionAnswer answer =
      find_partition(problem_on("zoo:bert-base:layers=1,batch=24", "4xl4"), options);
  EXPECT_GT(answer.chosen.step, 0);
  EXPECT_GE(answer.chosen.step, answer.bound.step);
  ASSERT_EQ(answer.others.size(), 1U);
  EXPECT_EQ(answer.others[0].name, "data-parallel");
  EXPECT_EQ(answer.others[0].step, answer.chosen.step);
  EXPECT_EQ(answer.not_compared.size(), 11U);
  EXPECT_EQ(answer.not_compared.back(), "fewer devices");
  EXPECT_TRUE(answer.fewer_left_out);
}

// Whole ops are placed under a limit of evaluations as well, so that the table does not depend on
// how fast the machine is.
TEST(Partition, the_same_evaluations_give_the_same_table) {
  PartitionOptions options;
  options.method = "tofu";
  options.budget.evaluations = 1;
  const auto problem = problem_on("zoo:gnmt-2:batch=16,sequence=4,hidden=64", "4xl4");
  const PartitionAnswer first = find_partition(problem, options);
  options.budget.threads = 2;
  const PartitionAnswer second = find_partition(problem, options);
  EXPECT_EQ(first.placed.step, second.placed.step);
  EXPECT_EQ(first.placed.peaks, second.placed.peaks);
  EXPECT_EQ(first.chosen.step, second.chosen.step);
}

TEST(Partition, says_how_many_devices_compute_the_same) {
  PartitionOptions options;
  options.budget.seconds = 0;
  const auto copies = [&](const std::string& model) {
    return find_partition(problem_on(model, "8xl4"), options).chosen.copies;
  };
  EXPECT_GT(copies("zoo:bert-base:layers=1,batch=1"), 7);
  EXPECT_NEAR(copies("zoo:bert-base:layers=1,batch=4"), 2, 0.2);
  EXPECT_NEAR(copies("zoo:bert-base:layers=1,batch=24"), 1, 0.1);
}

TEST(Partition, says_whether_costs_that_are_added_up_are_the_least) {
  PartitionOptions options;
  options.method = "optcnn";
  options.budget.evaluations = 1;
  const auto problem =
      problem_on("zoo:stacked-rnn:layers=1,hidden=64,sequence=2,batch=16", "4xp100");
  const PartitionAnswer exact = find_partition(problem, options);
  ASSERT_TRUE(exact.chosen.added_cost);
  EXPECT_TRUE(exact.chosen.added_cost->proven);
  EXPECT_EQ(exact.chosen.added_cost->lower_bound, exact.chosen.added_cost->cost);
  options.method = "optcnn(ways=2)";
  const PartitionAnswer near = find_partition(problem, options);
  ASSERT_TRUE(near.chosen.added_cost);
  EXPECT_FALSE(near.chosen.added_cost->proven);
  EXPECT_EQ(near.chosen.added_cost->lower_bound, 0);
  EXPECT_GE(near.chosen.added_cost->cost, exact.chosen.added_cost->cost);
}

TEST(QuickPartition, is_nothing_where_no_op_is_described) {
  Budget budget;
  budget.seconds = 5;
  EXPECT_FALSE(quick_partition(fork_on(gpu_cluster(2)), budget));
}

}  // namespace
}  // namespace emplace
