#include "cluster/runs_on.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster.h"

#include "support/error_text.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RunsOn, cores_are_ranges_and_numbers) {
  const RunsOn where = parse_runs_on("cores 8,0-3");
  EXPECT_THAT(where.cores, ElementsAre(0, 1, 2, 3, 8));
  EXPECT_FALSE(where.cuda.has_value());
  EXPECT_EQ(runs_on_text(where), "cores 0-3,8");
}

TEST(RunsOn, a_gpu_may_have_cores_of_its_own) {
  EXPECT_EQ(parse_runs_on("cuda:3").cuda, 3);
  EXPECT_THAT(parse_runs_on("cuda:3").cores, IsEmpty());
  const RunsOn where = parse_runs_on("cuda:0 cores 2,5-6");
  EXPECT_EQ(where.cuda, 0);
  EXPECT_THAT(where.cores, ElementsAre(2, 5, 6));
}

TEST(RunsOn, what_is_written_reads_back) {
  for (const char* text : {"cores 0", "cores 0-1", "cores 0-3,8", "cores 1,3,5-7", "cuda:0",
                           "cuda:12", "cuda:1 cores 2", "cuda:0 cores 2-3,9"}) {
    EXPECT_EQ(runs_on_text(parse_runs_on(text)), text);
  }
}

TEST(RunsOn, refuses_what_names_no_core_or_one_twice) {
  for (const char* text :
       {"",           "core 1",       "cores",    "cores ",   "cores a",
        "cores 3-1",  "cores 1,,2",   "cores -1", "cores 1-", "cores 0-3,2",
        "cores 4096", "cuda",         "cuda:",    "cuda:x",   "cuda:-1",
        "cuda:0 2",   "cuda:0 cores", "gpu0",     "cores 0 ", "cores 99999999999"}) {
    EXPECT_THAT(error_text([&] { parse_runs_on(text); }),
                AllOf(HasSubstr("runs_on"), HasSubstr("cores 0-3,8")))
        << text;
  }
}

TEST(RunsOn, a_cluster_checks_it_and_names_the_device) {
  ClusterSpec spec;
  spec.devices.push_back({.name = "cpu0", .kind = "cpu", .memory = 1 << 20, .runs_on = "cores 0-"});
  EXPECT_THAT(error_text([&] { Cluster{spec}; }),
              AllOf(HasSubstr("device 'cpu0'"), HasSubstr("'cores 0-'")));
}

TEST(RunsOn, a_throttled_rule_makes_throttled_links) {
  ClusterSpec spec;
  for (const char* name : {"a", "b", "c"}) {
    spec.devices.push_back({.name = name, .kind = "cpu", .memory = 1 << 20});
  }
  spec.links.push_back({.bandwidth = 1'000'000'000, .latency = 0, .throttled = true});
  spec.links.push_back({.from = "a", .to = "b", .bandwidth = 2'000'000'000, .latency = 0});
  const Cluster cluster(spec);
  EXPECT_TRUE(cluster.link(1, 0)->throttled);
  EXPECT_TRUE(cluster.link(0, 2)->throttled);
  EXPECT_FALSE(cluster.link(0, 1)->throttled);
}

}  // namespace
}  // namespace emplace
