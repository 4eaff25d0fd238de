#include "cluster/local_cluster.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/device_kinds.h"
#include "cluster/gpu_names.h"
#include "cluster/runs_on.h"

#include "support/error_text.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr Bytes kGiB = Bytes{1} << 30;
constexpr std::int64_t kGigabytes = 1'000'000'000;

LocalMachine sixteen_cores() {
  LocalMachine machine = synthetic_machine("core:16 pu:2");
  machine.memory = 100 * kGiB;
  machine.gigahertz = 2.5;
  machine.float32_per_cycle = 64;
  return machine;
}

LocalCluster groups_of(std::vector<int> sizes) {
  return local_cluster(sixteen_cores(), {.groups = std::move(sizes), .link = {}}, {});
}

LocalGpu h200(int index, std::vector<int> peers = {}) {
  return {index, "NVIDIA H200", 140 * kGiB, std::move(peers)};
}

TEST(LocalCluster, is_one_cpu_of_all_cores_unless_something_else_is_asked_for) {
  const LocalCluster local = local_cluster(sixteen_cores(), {}, {});
  EXPECT_THAT(local.warnings, IsEmpty());
  const Cluster cluster(local.spec);
  EXPECT_EQ(cluster.name(), "local");
  ASSERT_EQ(cluster.num_devices(), 1U);
  EXPECT_TRUE(cluster.is_cpu(0));
  EXPECT_EQ(cluster.device(0).name, "cpu0");
  EXPECT_EQ(cluster.device(0).memory, 80 * kGiB);
  EXPECT_EQ(parse_runs_on(cluster.device(0).runs_on).cores.size(), 16U);
  EXPECT_TRUE(cluster.spec().links.empty());
}

TEST(LocalCluster, has_a_cpu_a_group_with_its_share_of_the_memory) {
  const LocalCluster local = groups_of({4, 4, 2});
  EXPECT_THAT(local.warnings, IsEmpty());
  const Cluster cluster(local.spec);
  EXPECT_EQ(cluster.name(), "local:2x4+1x2");
  ASSERT_EQ(cluster.num_devices(), 3U);
  EXPECT_EQ(cluster.device(1).name, "cpu1");
  EXPECT_EQ(cluster.device(1).kind, "cpu-4cores");
  EXPECT_EQ(cluster.device(1).memory, 32 * kGiB);
  EXPECT_EQ(cluster.device(2).kind, "cpu-2cores");
  EXPECT_EQ(cluster.device(2).memory, 16 * kGiB);
  EXPECT_TRUE(cluster.fully_linked());
  const Link* link = cluster.link(0, 2);
  EXPECT_EQ(link->bandwidth, 5 * kGigabytes);
  EXPECT_EQ(link->latency, 5'000);
  EXPECT_FALSE(link->throttled);
  EXPECT_EQ(link->channel, cluster.link(0, 1)->channel);  // one out of each
  EXPECT_NE(link->channel, cluster.link(1, 0)->channel);
}

TEST(LocalCluster, cpus_of_as_many_cores_as_the_built_in_one_are_like_it) {
  const Cluster cluster(local_cluster(sixteen_cores(), {}, {}).spec);
  const DeviceKind& kind = cluster.kind_of(0);
  const DeviceKind* built_in = find_device_kind("cpu16");
  EXPECT_DOUBLE_EQ(kind.peak_flops.at("float32"), built_in->peak_flops.at("float32"));
  EXPECT_DOUBLE_EQ(kind.peak_flops.at("float64"), built_in->peak_flops.at("float64"));
  EXPECT_DOUBLE_EQ(kind.memory_bandwidth, built_in->memory_bandwidth);
  EXPECT_THAT(kind.source, StartsWith("estimated from this machine"));
  const DeviceKind quarter = Cluster(groups_of({4}).spec).kind_of(0);
  EXPECT_DOUBLE_EQ(quarter.peak_flops.at("float32"), kind.peak_flops.at("float32") / 4);
  EXPECT_DOUBLE_EQ(quarter.memory_bandwidth, kind.memory_bandwidth / 4);
  LocalMachine odd = sixteen_cores();
  odd.gigahertz = 2.44543;
  odd.float32_per_cycle = 32;
  EXPECT_EQ(Cluster(local_cluster(odd, {.groups = {1}, .link = {}}, {}).spec)
                .kind_of(0)
                .peak_flops.at("float32"),
            78.3e9);
}

TEST(LocalCluster, warns_where_no_cores_are_left_for_links) {
  EXPECT_EQ(needed_cores(groups_of({4, 4, 4}).spec), 16);
  EXPECT_THAT(groups_of({4, 4, 4}).warnings, IsEmpty());
  EXPECT_THAT(groups_of({4, 4, 5}).warnings,
              ElementsAre(AllOf(HasSubstr("17 cores"), HasSubstr("16 can be used"))));
  EXPECT_THAT(groups_of({16}).warnings, IsEmpty());
  EXPECT_THAT(groups_of({17}).warnings.size(), 1U);  // both threads of a core
}

TEST(LocalCluster, refuses_groups_that_need_more_cores_than_there_are) {
  const LocalOptions options{.groups = {20, 20}, .link = {}};
  EXPECT_THAT(error_text([&] { local_cluster(sixteen_cores(), options, {}); }),
              AllOf(HasSubstr("40 cores"), HasSubstr("has 32")));
  const LocalOptions shared{.groups = {20, 20}, .link = {}, .oversubscribe = true};
  const LocalCluster local = local_cluster(sixteen_cores(), shared, {});
  EXPECT_EQ(local.spec.devices.size(), 2U);
  EXPECT_EQ(local.warnings.size(), 1U);
}

TEST(LocalCluster, ranks_have_devices_of_their_own) {
  const LocalCluster local =
      local_cluster(sixteen_cores(), {.groups = {2, 1}, .link = {}, .ranks = 2}, {});
  EXPECT_THAT(local.warnings, IsEmpty());
  EXPECT_EQ(needed_cores(local.spec), 2 * (3 + 3));
  const Cluster cluster(local.spec);
  ASSERT_EQ(cluster.num_devices(), 2U);
  std::set<int> cores;
  for (DeviceId id = 0; id < 2; ++id) {
    ASSERT_EQ(cluster.device(id).also_runs_on.size(), 1U);
    for (const std::string& place :
         {cluster.device(id).runs_on, cluster.device(id).also_runs_on[0]}) {
      const std::vector<int> own = parse_runs_on(place).cores;
      EXPECT_EQ(own.size(), id == 0 ? 2U : 1U);
      cores.insert(own.begin(), own.end());
    }
  }
  EXPECT_EQ(cores.size(), 6U);
  // All memory is shared by the cores of both.
  const Cluster alone(local_cluster(sixteen_cores(), {.groups = {2, 1}, .link = {}}, {}).spec);
  EXPECT_NEAR(static_cast<double>(alone.device(0).memory),
              2.0 * static_cast<double>(cluster.device(0).memory), 4e6);
  // Each as many as can be spared.
  const LocalCluster whole =
      local_cluster(sixteen_cores(), {.groups = {}, .link = {}, .ranks = 4}, {});
  EXPECT_EQ(parse_runs_on(whole.spec.devices[0].runs_on).cores.size(), 4U);
}

TEST(LocalCluster, ranks_have_as_many_gpus_as_each_other) {
  const LocalCluster local = local_cluster(sixteen_cores(), {.groups = {1}, .link = {}, .ranks = 2},
                                           {h200(0), h200(1), h200(2), h200(3)});
  const Cluster cluster(local.spec);
  ASSERT_EQ(cluster.num_devices(), 3U);
  EXPECT_EQ(cluster.device(0).runs_on, "cuda:0");
  EXPECT_THAT(cluster.device(0).also_runs_on, ElementsAre("cuda:2"));
  EXPECT_EQ(cluster.device(1).runs_on, "cuda:1");
  EXPECT_THAT(cluster.device(1).also_runs_on, ElementsAre("cuda:3"));
  EXPECT_TRUE(cluster.fully_linked());
  EXPECT_THAT(error_text([] {
                local_cluster(sixteen_cores(), {.groups = {}, .link = {}, .ranks = 2},
                              {h200(0), h200(1), h200(2)});
              }),
              AllOf(HasSubstr("3 GPUs"), HasSubstr("2 ranks")));
}

TEST(LocalCluster, links_can_be_throttled) {
  const LocalOptions options{.groups = {2, 2}, .link = LocalLink{kGigabytes, 50'000}};
  for (const std::vector<LocalGpu>& gpus : {std::vector<LocalGpu>{}, {h200(0)}}) {
    const Cluster cluster(local_cluster(sixteen_cores(), options, gpus).spec);
    for (DeviceId from = 0; from < cluster.num_devices(); ++from) {
      for (DeviceId to = 0; to < cluster.num_devices(); ++to) {
        if (from == to) continue;
        const Link* link = cluster.link(from, to);
        EXPECT_TRUE(link->throttled);
        EXPECT_EQ(link->bandwidth, kGigabytes);
        EXPECT_EQ(link->latency, 50'000);
      }
    }
  }
}

TEST(LocalCluster, a_link_is_a_bandwidth_and_a_latency) {
  EXPECT_EQ(parse_local_link("1GB/s,50us"), (LocalLink{kGigabytes, 50'000}));
  EXPECT_EQ(parse_local_link("100Mb/s,1.5ms"), (LocalLink{12'500'000, 1'500'000}));
  EXPECT_EQ(parse_local_link("2GB/s,0us").latency, 0);
  EXPECT_EQ(parse_local_link("2GB/s,700ns").latency, 700);
  EXPECT_EQ(parse_local_link("2GB/s").latency, 5'000);
  for (const char* text : {"", "1GB", "1GB/s,", "1GB/s,50", "1GB/s,50m", "50us", "0GB/s,1us",
                           "1GB/s,-1us", "1GB/s,1us,1us", "1GB/s,us"}) {
    EXPECT_THAT(error_text([&] { parse_local_link(text); }), HasSubstr("1GB/s,50us")) << text;
  }
}

TEST(LocalCluster, a_gpu_stands_beside_a_cpu_that_leaves_cores_to_it) {
  const LocalCluster local = local_cluster(sixteen_cores(), {}, {h200(0)});
  EXPECT_THAT(local.warnings, IsEmpty());
  const Cluster cluster(local.spec);
  ASSERT_EQ(cluster.num_devices(), 2U);
  EXPECT_EQ(cluster.device(0).name, "gpu0");
  EXPECT_EQ(cluster.device(0).kind, "h200");
  EXPECT_EQ(cluster.device(0).memory, 140 * kGiB);
  EXPECT_EQ(cluster.device(0).runs_on, "cuda:0");
  EXPECT_EQ(cluster.device(1).kind, "cpu-12cores");  // two send, one drives, one launches
  EXPECT_EQ(needed_cores(local.spec), 16);
  EXPECT_EQ(cluster.link(0, 1)->bandwidth, 50 * kGigabytes);
  EXPECT_EQ(cluster.link(1, 0)->bandwidth, 50 * kGigabytes);
  EXPECT_EQ(cluster.link(1, 0)->latency, 10'000);
}

TEST(LocalCluster, gpus_reach_their_peers_directly_and_others_through_memory) {
  const Cluster cluster(
      local_cluster(sixteen_cores(), {}, {h200(0, {1}), h200(1, {0}), h200(2)}).spec);
  EXPECT_EQ(cluster.link(0, 1)->bandwidth, 450 * kGigabytes);
  EXPECT_EQ(cluster.link(0, 2)->bandwidth, 25 * kGigabytes);
  EXPECT_EQ(cluster.link(2, 1)->bandwidth, 25 * kGigabytes);
  EXPECT_EQ(cluster.link(2, 3)->bandwidth, 50 * kGigabytes);
  EXPECT_TRUE(cluster.fully_linked());
  // T4s have PCIe alone.
  const LocalGpu t4{0, "Tesla T4", 15 * kGiB, {1}};
  const LocalGpu other{1, "Tesla T4", 15 * kGiB, {0}};
  const Cluster pair(local_cluster(sixteen_cores(), {}, {t4, other}).spec);
  EXPECT_EQ(pair.link(0, 1)->bandwidth, 12 * kGigabytes);
}

TEST(LocalCluster, a_small_machine_beside_gpus_still_has_a_cpu) {
  LocalMachine machine = synthetic_machine("core:2 pu:1");
  const LocalCluster local = local_cluster(machine, {}, {h200(0), h200(1)});
  EXPECT_EQ(local.spec.devices.size(), 3U);
  EXPECT_EQ(local.spec.devices[2].kind, "cpu-1core");
  EXPECT_EQ(local.warnings.size(), 1U);
}

TEST(LocalCluster, a_board_that_is_not_built_in_gets_figures_with_a_warning) {
  const LocalGpu gpu{0, "NVIDIA A10G", 22 * kGiB, {}};
  const LocalCluster local = local_cluster(sixteen_cores(), {}, {gpu});
  EXPECT_THAT(local.warnings, ElementsAre(AllOf(HasSubstr("gpu0"), HasSubstr("A10G"))));
  const Cluster cluster(local.spec);
  EXPECT_EQ(cluster.device(0).kind, "gpu-nvidia-a10g");
  EXPECT_FALSE(cluster.is_cpu(0));
  EXPECT_EQ(cluster.kind_of(0).memory, 22 * kGiB);
  EXPECT_GT(cluster.kind_of(0).peak_flops.at("float32"), 1e12);
  EXPECT_THAT(cluster.kind_of(0).source, HasSubstr("assumed"));
}

TEST(LocalCluster, has_names_of_its_own) {
  EXPECT_TRUE(is_local_name("local"));
  EXPECT_TRUE(is_local_name("local:4x3"));
  EXPECT_TRUE(is_local_name("local:"));
  EXPECT_FALSE(is_local_name("locals"));
  EXPECT_FALSE(is_local_name("local.yaml"));
  EXPECT_FALSE(is_local_name("loca"));
  EXPECT_THAT(parse_local_name("local").groups, IsEmpty());
  EXPECT_THAT(parse_local_name("local:2x3").groups, ElementsAre(3, 3));
  EXPECT_THAT(error_text([] { parse_local_name("local:"); }),
              AllOf(HasSubstr("'local:'"), HasSubstr("4x3")));
}

TEST(GpuNames, of_drivers_are_built_in_kinds) {
  const auto kind = [](const char* name, Bytes gib) -> std::string {
    const DeviceKind* found = kind_of_gpu(name, gib * kGiB);
    return found == nullptr ? "" : found->name;
  };
  EXPECT_EQ(kind("NVIDIA H200", 140), "h200");
  EXPECT_EQ(kind("NVIDIA H100 80GB HBM3", 79), "h100");
  EXPECT_EQ(kind("NVIDIA H100 PCIe", 79), "h100-pcie");
  EXPECT_EQ(kind("NVIDIA A100-SXM4-40GB", 39), "a100-40gb");
  EXPECT_EQ(kind("NVIDIA A100-SXM4-80GB", 79), "a100");
  EXPECT_EQ(kind("Tesla V100-SXM2-16GB", 16), "v100");
  EXPECT_EQ(kind("Tesla V100-SXM2-32GB", 31), "v100-32gb");
  EXPECT_EQ(kind("Tesla V100-PCIE-16GB", 16), "v100-pcie");
  EXPECT_EQ(kind("Tesla P100-PCIE-16GB", 16), "p100");
  EXPECT_EQ(kind("Tesla P100-PCIE-12GB", 12), "p100-12gb");
  EXPECT_EQ(kind("Tesla T4", 15), "t4");
  EXPECT_EQ(kind("Tesla K80", 11), "k80");
  EXPECT_EQ(kind("NVIDIA L40S", 45), "l40s");
  EXPECT_EQ(kind("NVIDIA RTX A6000", 48), "a6000");
  EXPECT_EQ(kind("NVIDIA RTX 6000 Ada Generation", 48), "rtx6000-ada");
  EXPECT_EQ(kind("NVIDIA GeForce RTX 4090", 24), "rtx4090");
  EXPECT_EQ(kind("NVIDIA B200", 179), "b200");
  for (const char* other : {"NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4080 SUPER",
                            "NVIDIA GeForce RTX 4090 Laptop GPU", "Quadro RTX 6000", "NVIDIA A10G",
                            "NVIDIA T400", "", "-", "cpu", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}) {
    EXPECT_EQ(kind(other, 24), "") << other;
  }
}

}  // namespace
}  // namespace emplace
