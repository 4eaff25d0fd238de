// emplace cluster local, and --cluster local, on whatever machine this is and on made-up ones.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster.h"
#include "cluster/runs_on.h"

#include "io/readers.h"
#include "support/command.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LocalCommand : public ::testing::Test {
 protected:
  testing::CommandResult run(const std::string& arguments) { return folder_.emplace(arguments); }
  // As if the machine were this.
  testing::CommandResult run_on(const std::string& topology, const std::string& arguments) {
    return folder_.shell("HWLOC_SYNTHETIC='" + topology + "' " EMPLACE_BINARY " " + arguments);
  }
  testing::TemporaryFolder folder_;
};

// Every device is somewhere, and no two share a core.
void expect_apart(const Cluster& cluster) {
  std::set<int> seen;
  std::size_t count = 0;
  for (DeviceId i = 0; i < cluster.num_devices(); ++i) {
    ASSERT_NE(cluster.device(i).runs_on, "");
    const RunsOn where = parse_runs_on(cluster.device(i).runs_on);
    EXPECT_TRUE(where.cuda || !where.cores.empty());
    seen.insert(where.cores.begin(), where.cores.end());
    count += where.cores.size();
  }
  EXPECT_EQ(seen.size(), count);
}

TEST_F(LocalCommand, describes_this_machine_in_a_file_that_reads_back) {
  const testing::CommandResult printed = run("cluster local");
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_THAT(printed.err, HasSubstr("this machine: "));
  const Cluster cluster = read_cluster_yaml(printed.out);
  EXPECT_EQ(cluster.name(), "local");
  expect_apart(cluster);
  const testing::CommandResult written = run("cluster local -o this.yaml");
  EXPECT_EQ(written.exit_code, 0);
  EXPECT_THAT(written.out, IsEmpty());
  EXPECT_THAT(written.err, HasSubstr("wrote this.yaml"));
  EXPECT_EQ(folder_.read("this.yaml"), printed.out);
  EXPECT_EQ(folder_.num_files(), 1U);
  EXPECT_EQ(run("cluster show this.yaml").out, printed.out);
  EXPECT_EQ(run("cluster show local").out, printed.out);
}

TEST_F(LocalCommand, prints_json_too_and_nothing_else_when_quiet) {
  const testing::CommandResult result = run("cluster local --json -q");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  folder_.write("this.json", result.out);
  EXPECT_EQ(run("cluster show this.json").out, run("cluster show local").out);
}

TEST_F(LocalCommand, divides_cores_into_groups) {
  const std::string machine = "numa:2 l3:2 core:4 pu:2";
  const testing::CommandResult result =
      run_on(machine, "cluster local --groups 2x3+1x4 --link 1GB/s,50us");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("16 cores with 32 hardware threads"),
                                HasSubstr("2 nodes of memory"), Not(HasSubstr("warning"))));
  const Cluster cluster = read_cluster_yaml(result.out);
  EXPECT_EQ(cluster.name(), "local:2x3+1x4");
  ASSERT_EQ(cluster.num_devices(), 3U);
  expect_apart(cluster);
  EXPECT_EQ(cluster.device(2).runs_on, "cores 0,2,4,6");
  EXPECT_EQ(cluster.device(0).runs_on, "cores 8,10,12");
  EXPECT_TRUE(cluster.link(0, 1)->throttled);
  EXPECT_EQ(cluster.link(0, 1)->latency, 50'000);
  EXPECT_EQ(run_on(machine, "cluster local --groups 2x3+1x4").out,
            run_on(machine, "cluster show local:2x3+1x4").out);
}

TEST_F(LocalCommand, warns_and_refuses_where_cores_are_few) {
  const testing::CommandResult tight = run_on("core:4 pu:1", "cluster local --groups 2x2");
  EXPECT_EQ(tight.exit_code, 0);
  EXPECT_THAT(tight.err,
              AllOf(HasSubstr("warning: "), HasSubstr("takes 7 cores"), HasSubstr("will mislead")));
  const testing::CommandResult refused =
      run_on("core:4 pu:1", "cluster local --groups 4x3 -o four.yaml");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("12 cores"), HasSubstr("has 4")));
  EXPECT_FALSE(folder_.has("four.yaml"));
  const testing::CommandResult shared =
      run_on("core:4 pu:1", "cluster local --groups 4x3 --oversubscribe -o four.yaml");
  EXPECT_EQ(shared.exit_code, 0);
  EXPECT_THAT(shared.err, HasSubstr("will mislead"));
  EXPECT_EQ(read_cluster_yaml(folder_.read("four.yaml")).num_devices(), 4U);
}

TEST_F(LocalCommand, refuses_what_it_cannot_read) {
  for (const auto& [arguments, part] :
       std::vector<std::pair<std::string, std::string>>{{"--groups 4y3", "--groups"},

                                                        {"--link 1GB", "--link"},

                                                        {"--groups 1x100000", "--groups"}}) {
    const testing::CommandResult result = run("cluster local " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.err, HasSubstr(part)) << arguments;
    EXPECT_THAT(result.out, IsEmpty()) << arguments;
  }
}

TEST_F(LocalCommand, places_on_this_machine) {
  const testing::CommandResult result =
      run_on("package:1 [numa(memory=64GB)] core:16 pu:1",
             "place zoo:alexnet --cluster local:3x4 -p heft --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("local:3x4"));
  const testing::CommandResult refused = run_on("core:2 pu:1", "place zoo:alexnet -c local:3x4");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("cluster 'local:3x4'"), HasSubstr("has 2")));
}

TEST_F(LocalCommand, a_file_of_the_same_name_comes_first) {
  folder_.write("local", run("cluster show 2xt4").out);
  EXPECT_THAT(run("cluster show local").out, HasSubstr("2xt4"));
}

TEST_F(LocalCommand, shows_help_with_an_example) {
  const testing::CommandResult result = run("cluster local --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("Example: emplace cluster local"), HasSubstr("--groups"),
                                HasSubstr("--link"), HasSubstr("--oversubscribe")));
}

}  // namespace
}  // namespace emplace
