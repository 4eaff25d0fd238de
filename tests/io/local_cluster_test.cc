// Clusters that steps can be executed on, as files: this machine, and what it is made of.
#include "cluster/local_cluster.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/device_kinds.h"
#include "cluster/runs_on.h"

#include "io/cluster_yaml_writer.h"
#include "io/readers.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string with_device_and_link(const std::string& device, const std::string& link) {
  return "format: emplace.cluster/1\ndevices:\n- {name: a, kind: cpu" + device +
         "}\n- {name: b, kind: cpu}\nlinks:\n- {bandwidth: 1GB/s" + link + "}\n";
}

TEST(LocalClusterFile, says_where_devices_are) {
  const Cluster cluster = read_cluster_yaml(with_device_and_link(", runs_on: 'cores 0-3,8'", ""));
  EXPECT_EQ(cluster.device(0).runs_on, "cores 0-3,8");
  EXPECT_EQ(cluster.device(1).runs_on, "");
  const std::string written = write_cluster_yaml(cluster.spec());
  EXPECT_THAT(written, HasSubstr("runs_on: \"cores 0-3,8\""));
  EXPECT_EQ(read_cluster_yaml(written).device(0).runs_on, "cores 0-3,8");
  EXPECT_THAT(error_text([] { read_cluster_yaml(with_device_and_link(", runs_on: here", "")); }),
              AllOf(HasSubstr("device 'a'"), HasSubstr("'here'")));
}

TEST(LocalClusterFile, says_where_devices_are_for_each_rank) {
  const Cluster cluster =
      read_cluster_yaml(with_device_and_link(", runs_on: [cores 0-3, 'cores 4-6,8']", ""));
  EXPECT_EQ(cluster.device(0).runs_on, "cores 0-3");
  EXPECT_THAT(cluster.device(0).also_runs_on, testing::ElementsAre("cores 4-6,8"));
  const std::string written = write_cluster_yaml(cluster.spec());
  EXPECT_THAT(written, HasSubstr("runs_on: [\"cores 0-3\", \"cores 4-6,8\"]"));
  EXPECT_EQ(read_cluster_yaml(written).device(0).also_runs_on, cluster.device(0).also_runs_on);
  for (const char* wrong : {"[cores 0, here]", "[cores 0, [cores 1]]", "[cores 0, '']",
                            "['', cores 0]", "{a: cores 1}"}) {
    EXPECT_THAT(error_text([&] {
                  read_cluster_yaml(with_device_and_link(std::string(", runs_on: ") + wrong, ""));
                }),
                AllOf(HasSubstr("device 'a'"), HasSubstr("runs_on")))
        << wrong;
  }
}

TEST(LocalClusterFile, says_which_links_are_throttled) {
  const Cluster cluster = read_cluster_yaml(with_device_and_link("", ", throttled: true"));
  EXPECT_TRUE(cluster.link(0, 1)->throttled);
  const std::string written = write_cluster_yaml(cluster.spec());
  EXPECT_THAT(written, HasSubstr("throttled: true"));
  EXPECT_TRUE(read_cluster_yaml(written).link(0, 1)->throttled);
  const Cluster plain = read_cluster_yaml(with_device_and_link("", ""));
  EXPECT_FALSE(plain.link(0, 1)->throttled);
  EXPECT_THAT(write_cluster_yaml(plain.spec()), Not(HasSubstr("throttled")));
  EXPECT_THAT(error_text([] { read_cluster_yaml(with_device_and_link("", ", throttled: 3")); }),
              AllOf(HasSubstr("link"), HasSubstr("throttled")));
}

void expect_same_kind(const DeviceKind& a, const DeviceKind& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.peak_flops, b.peak_flops);
  EXPECT_DOUBLE_EQ(a.memory_bandwidth, b.memory_bandwidth);
  EXPECT_EQ(a.memory, b.memory);
  EXPECT_EQ(a.launch_us, b.launch_us);
  EXPECT_EQ(a.source, b.source);
  for (std::size_t i = 0; i < kNumOpClasses; ++i) {
    const auto op_class = static_cast<OpClass>(i);
    EXPECT_TRUE(a.curves[op_class] == b.curves[op_class]) << op_class_name(op_class);
  }
}

void expect_reads_back(const ClusterSpec& spec) {
  const Cluster cluster(spec);
  const std::string written = write_cluster_yaml(spec);
  const Cluster again = read_cluster_yaml(written);
  EXPECT_EQ(write_cluster_yaml(again.spec()), written);
  ASSERT_EQ(again.num_devices(), cluster.num_devices());
  for (DeviceId i = 0; i < cluster.num_devices(); ++i) {
    EXPECT_EQ(again.device(i).name, cluster.device(i).name);
    EXPECT_EQ(again.device(i).memory, cluster.device(i).memory);
    EXPECT_EQ(again.device(i).runs_on, cluster.device(i).runs_on);
    expect_same_kind(again.kind_of(i), cluster.kind_of(i));
    for (DeviceId to = 0; to < cluster.num_devices(); ++to) {
      if (i == to) continue;
      EXPECT_EQ(again.link(i, to)->bandwidth, cluster.link(i, to)->bandwidth);
      EXPECT_EQ(again.link(i, to)->latency, cluster.link(i, to)->latency);
      EXPECT_EQ(again.link(i, to)->throttled, cluster.link(i, to)->throttled);
    }
  }
}

TEST(LocalClusterFile, of_any_machine_reads_back) {
  const LocalMachine machine = synthetic_machine("numa:2 l3:2 core:4 pu:2");
  const std::vector<LocalGpu> gpus{{0, "NVIDIA H200", Bytes{140} << 30, {1}},
                                   {1, "NVIDIA H200", Bytes{140} << 30, {0}},
                                   {2, "A \"new\" one", Bytes{20} << 30, {}}};
  for (const auto& present : {std::vector<LocalGpu>{}, gpus}) {
    expect_reads_back(local_cluster(machine, {}, present).spec);
    expect_reads_back(local_cluster(machine, {.groups = {3, 3, 2}, .link = {}}, present).spec);
    const LocalOptions slow{.groups = {1, 2}, .link = LocalLink{1'000'000'000, 50'500}};
    expect_reads_back(local_cluster(machine, slow, present).spec);
  }
}

TEST(LocalClusterFile, does_not_repeat_the_curves_of_the_built_in_cpu) {
  const ClusterSpec spec = local_cluster(synthetic_machine("core:4 pu:1"), {}, {}).spec;
  EXPECT_THAT(write_cluster_yaml(spec), AllOf(HasSubstr("like: cpu\n"), Not(HasSubstr("curves"))));
}

TEST(LocalClusterFile, keeps_the_curves_of_cpus_beside_a_cpu_of_the_files_own) {
  ClusterSpec spec = local_cluster(synthetic_machine("core:4 pu:1"), {}, {}).spec;
  DeviceKind own = *find_device_kind("cpu");
  own.curves = gpu_curves();
  spec.kinds.insert(spec.kinds.begin(), own);
  spec.devices.push_back({.name = "other", .kind = "cpu", .memory = Bytes{1} << 30});
  spec.links.push_back({.bandwidth = 1'000'000'000, .latency = 0});
  expect_reads_back(spec);
}

TEST(LocalClusterFile, this_machine_is_a_cluster_by_name) {
  const auto cluster = read_cluster("local");
  EXPECT_EQ(cluster->name(), "local");
  std::set<int> cores;
  std::size_t count = 0;
  for (DeviceId i = 0; i < cluster->num_devices(); ++i) {
    const RunsOn where = parse_runs_on(cluster->device(i).runs_on);
    cores.insert(where.cores.begin(), where.cores.end());
    count += where.cores.size();
  }
  EXPECT_GT(count, 0U);
  EXPECT_EQ(cores.size(), count);
  EXPECT_EQ(read_cluster("local:1x1")->name(), "local:1x1");
}

TEST(LocalClusterFile, says_what_is_wrong_with_the_name) {
  EXPECT_THAT(error_text([] { read_cluster("local:4y3"); }),
              AllOf(HasSubstr("'local:4y3'"), HasSubstr("4x3")));
  EXPECT_THAT(error_text([] { read_cluster("local:2x4000"); }),
              AllOf(HasSubstr("'local:2x4000'"), HasSubstr("4000 cores")));
  EXPECT_THAT(error_text([] { read_cluster("locale"); }), HasSubstr("or local"));
}

}  // namespace
}  // namespace emplace
