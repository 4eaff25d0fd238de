#include "cluster/presets.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/device_kinds.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kGB = 1'000'000'000;

std::string preset_error(const std::string& name) {
  try {
    preset_cluster(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOption);
    return error.what();
  }
  return "no error";
}

std::int64_t bandwidth(const Cluster& cluster, DeviceId from, DeviceId to) {
  const Link* link = cluster.link(from, to);
  return link == nullptr ? 0 : link->bandwidth;
}

TEST(Presets, four_p100_have_one_pcie_channel_out_of_each) {
  const Cluster cluster(preset_cluster("4xp100"));
  EXPECT_EQ(cluster.name(), "4xp100");
  ASSERT_EQ(cluster.num_devices(), 4U);
  EXPECT_EQ(cluster.device(3).name, "gpu3");
  EXPECT_EQ(cluster.device(3).kind, "p100");
  EXPECT_EQ(cluster.device(3).memory, Bytes{16} << 30);
  EXPECT_EQ(cluster.num_channels(), 4U);
  EXPECT_EQ(cluster.link(0, 1)->channel, cluster.link(0, 3)->channel);
  EXPECT_NE(cluster.link(0, 1)->channel, cluster.link(1, 0)->channel);
  EXPECT_EQ(bandwidth(cluster, 0, 3), 12 * kGB);
  EXPECT_EQ(cluster.link(0, 3)->latency, 10'000);
}

TEST(Presets, a_memory_suffix_sets_the_capacity_of_its_part_only) {
  const Cluster cluster(preset_cluster("1xp100@12GiB+2xp100"));
  ASSERT_EQ(cluster.num_devices(), 3U);
  EXPECT_EQ(cluster.device(0).memory, Bytes{12} << 30);
  EXPECT_EQ(cluster.device(1).memory, Bytes{16} << 30);
  EXPECT_EQ(cluster.device(2).name, "gpu2");
}

TEST(Presets, a_cpu_shares_one_channel_each_way) {
  const Cluster cluster(preset_cluster("2xa100-nvlink+cpu"));
  ASSERT_EQ(cluster.num_devices(), 3U);
  EXPECT_EQ(cluster.device(2).name, "cpu0");
  EXPECT_EQ(bandwidth(cluster, 0, 1), 300 * kGB);
  EXPECT_EQ(bandwidth(cluster, 0, 2), 24 * kGB);
  EXPECT_EQ(cluster.link(2, 0)->channel, cluster.link(2, 1)->channel);
  EXPECT_EQ(cluster.link(0, 2)->channel, cluster.link(1, 2)->channel);
  EXPECT_NE(cluster.link(0, 2)->channel, cluster.link(2, 0)->channel);
}

TEST(Presets, cpus_meet_over_their_sockets) {
  const Cluster cluster(preset_cluster("1xt4+2xcpu"));
  EXPECT_EQ(bandwidth(cluster, 1, 2), 40 * kGB);
  EXPECT_EQ(bandwidth(cluster, 0, 2), 12 * kGB);
  EXPECT_EQ(cluster.num_channels(), 6U);
}

TEST(Presets, unequal_generations_meet_at_the_slower_one) {
  const Cluster cluster(preset_cluster("2xa100+2xt4+2xh100+cpu"));
  EXPECT_EQ(bandwidth(cluster, 0, 1), 24 * kGB);  // a100 to a100
  EXPECT_EQ(bandwidth(cluster, 2, 3), 12 * kGB);  // t4 to t4
  EXPECT_EQ(bandwidth(cluster, 0, 2), 12 * kGB);
  EXPECT_EQ(bandwidth(cluster, 4, 5), 50 * kGB);  // h100 to h100
  EXPECT_EQ(bandwidth(cluster, 0, 4), 24 * kGB);
  EXPECT_EQ(bandwidth(cluster, 4, 1), 24 * kGB);
  EXPECT_EQ(bandwidth(cluster, 6, 4), 50 * kGB);  // the host to each at its own speed
  EXPECT_EQ(bandwidth(cluster, 6, 2), 12 * kGB);
}

TEST(Presets, switched_nvlink_has_one_port_per_device) {
  const Cluster cluster(preset_cluster("8xh100-nvlink"));
  EXPECT_EQ(cluster.num_channels(), 8U);
  EXPECT_EQ(bandwidth(cluster, 0, 7), 450 * kGB);
  EXPECT_EQ(cluster.link(0, 1)->channel, cluster.link(0, 7)->channel);
}

TEST(Presets, eight_v100_form_the_cube_mesh_of_a_dgx1) {
  const Cluster cluster(preset_cluster("8xv100-nvlink"));
  std::int64_t links = 0;
  for (DeviceId from = 0; from < 8; ++from) {
    std::int64_t out = 0;
    for (DeviceId to = 0; to < 8; ++to) {
      EXPECT_EQ(bandwidth(cluster, from, to), bandwidth(cluster, to, from));
      if (from != to && bandwidth(cluster, from, to) != 12 * kGB) {
        out += bandwidth(cluster, from, to) / (25 * kGB);
      }
    }
    EXPECT_EQ(out, 6) << "links of gpu" << from;  // a V100 has six
    links += out;
  }
  EXPECT_EQ(links, 48);
  EXPECT_EQ(bandwidth(cluster, 0, 3), 50 * kGB);
  EXPECT_EQ(bandwidth(cluster, 0, 5), 12 * kGB);  // not joined: PCIe
}

TEST(Presets, p100_have_four_single_links) {
  const Cluster cluster(preset_cluster("8xp100-nvlink"));
  for (DeviceId from = 0; from < 8; ++from) {
    int links = 0;
    for (DeviceId to = 0; to < 8; ++to) links += bandwidth(cluster, from, to) == 20 * kGB ? 1 : 0;
    EXPECT_EQ(links, 4) << "links of gpu" << from;
  }
}

TEST(Presets, sixteen_v100_are_switched) {
  const Cluster cluster(preset_cluster("16xv100-nvlink"));
  EXPECT_EQ(bandwidth(cluster, 0, 15), 150 * kGB);
  EXPECT_EQ(cluster.num_channels(), 16U);
}

TEST(Presets, a_kind_whose_name_ends_like_a_fabric_is_that_kind) {
  const Cluster cluster(preset_cluster("4xh100-pcie"));
  EXPECT_EQ(cluster.device(0).kind, "h100-pcie");
  EXPECT_EQ(bandwidth(cluster, 0, 1), 50 * kGB);
  EXPECT_EQ(Cluster(preset_cluster("2xa100-pcie")).device(0).kind, "a100");
  EXPECT_EQ(Cluster(preset_cluster("2xv100-pcie")).device(0).kind, "v100-pcie");
}

TEST(Presets, placeto_has_one_bus_out_of_every_device) {
  const Cluster cluster(preset_cluster("3xk80-placeto+cpu-broadwell16"));
  EXPECT_EQ(cluster.num_channels(), 4U);
  for (DeviceId from = 0; from < 4; ++from) {
    EXPECT_EQ(cluster.device(from).gap, 5'700);
    for (DeviceId to = 0; to < 4; ++to) {
      const Link* link = cluster.link(from, to);
      if (from == to) continue;
      EXPECT_EQ(link->bandwidth, 7'600'000'000);
      EXPECT_EQ(link->latency, 0);
      EXPECT_EQ(link->hold, 25'000);
      EXPECT_TRUE(link->multicast);
      EXPECT_EQ(link->channel, cluster.link(from, from == 0 ? 1 : 0)->channel);
    }
  }
}

TEST(Presets, tf1_sends_to_each_device_and_shares_the_way_into_the_host) {
  const Cluster cluster(preset_cluster("2xk40-tf1@11GiB+cpu-haswell18"));
  EXPECT_EQ(cluster.device(0).gap, 5'700);
  EXPECT_EQ(cluster.device(2).gap, 0);
  EXPECT_EQ(cluster.device(0).memory, Bytes{11} << 30);
  EXPECT_EQ(cluster.kind_of(0).launch_us, 5);
  EXPECT_EQ(cluster.kind_of(0).memory_bandwidth, 288e9);
  EXPECT_FALSE(cluster.link(0, 1)->multicast);
  EXPECT_EQ(cluster.link(0, 1)->hold, 25'000);
  EXPECT_EQ(cluster.link(0, 2)->channel, cluster.link(1, 2)->channel);
  EXPECT_EQ(cluster.link(2, 0)->channel, cluster.link(2, 1)->channel);
  EXPECT_NE(cluster.link(0, 1)->channel, cluster.link(0, 2)->channel);
  EXPECT_EQ(Cluster(preset_cluster("1xk80-tf1")).device(0).gap, 5'700);
}

TEST(Presets, a_runtime_follows_a_kind_whose_name_has_a_dash) {
  const Cluster cluster(preset_cluster("4xp100-12gb-tf1+cpu-broadwell24"));
  EXPECT_EQ(cluster.device(3).kind, "p100-12gb");
  EXPECT_EQ(cluster.device(3).memory, Bytes{12} << 30);
  EXPECT_EQ(cluster.device(3).gap, 5'700);
  EXPECT_EQ(cluster.device(4).name, "cpu0");
}

TEST(Presets, tofus_machine_has_the_bandwidths_that_it_names) {
  const Cluster cluster(preset_cluster("8xk80-p2+cpu-broadwell16"));
  EXPECT_EQ(bandwidth(cluster, 0, 7), 10'500'000'000);
  EXPECT_EQ(bandwidth(cluster, 0, 8), 10 * kGB);
  EXPECT_EQ(cluster.link(0, 8)->channel, cluster.link(7, 8)->channel);
  EXPECT_EQ(cluster.device(0).gap, 0);
  EXPECT_EQ(cluster.device(8).memory, Bytes{488} << 30);
}

// Pairs share the way out of their switch, and nothing inside it.
TEST(Presets, tofus_machine_is_a_tree_too) {
  const Cluster cluster(preset_cluster("4x(2xk80-p2)@10GB/s"));
  ASSERT_EQ(cluster.num_devices(), 8U);
  EXPECT_EQ(bandwidth(cluster, 0, 1), 10'500'000'000);
  EXPECT_EQ(bandwidth(cluster, 0, 2), 10 * kGB);
  EXPECT_EQ(cluster.link(0, 2)->channel, cluster.link(1, 7)->channel);
  EXPECT_NE(cluster.link(0, 2)->channel, cluster.link(0, 1)->channel);
  EXPECT_NE(cluster.link(0, 2)->channel, cluster.link(2, 0)->channel);
}

TEST(Presets, a_device_sends_no_more_than_its_slot_carries) {
  const Cluster cluster(preset_cluster("2xa100+2xt4+cpu"));
  for (DeviceId from = 0; from < 4; ++from) {
    for (DeviceId to = 0; to < 4; ++to) {
      if (from == to) continue;
      EXPECT_EQ(cluster.link(from, to)->channel, cluster.link(from, from == 0 ? 1 : 0)->channel);
    }
  }
}

TEST(Presets, machines_share_their_way_out) {
  const Cluster cluster(preset_cluster("2x(4xa100-nvlink)@25GB/s"));
  EXPECT_EQ(cluster.name(), "2x(4xa100-nvlink)@25GB/s");
  ASSERT_EQ(cluster.num_devices(), 8U);
  EXPECT_EQ(cluster.device(0).name, "m0.gpu0");
  EXPECT_EQ(cluster.device(7).name, "m1.gpu3");
  EXPECT_TRUE(cluster.fully_linked());
  EXPECT_EQ(cluster.num_channels(), 10U);  // a port of each device, a way out of each machine
  EXPECT_EQ(bandwidth(cluster, 0, 3), 300 * kGB);
  EXPECT_EQ(bandwidth(cluster, 4, 7), 300 * kGB);
  EXPECT_EQ(bandwidth(cluster, 0, 4), 25 * kGB);
  EXPECT_EQ(cluster.link(0, 4)->latency, 20'000);
  EXPECT_EQ(cluster.link(0, 4)->channel, cluster.link(3, 7)->channel);
  EXPECT_NE(cluster.link(0, 4)->channel, cluster.link(4, 0)->channel);
  EXPECT_EQ(cluster.channel_name(cluster.link(0, 4)->channel), "m0->*");
}

TEST(Presets, machines_may_differ_and_have_machines_in_them) {
  const Cluster mixed(preset_cluster("1x(2xh100-nvlink+cpu)+2x(1xt4@12GiB)@100Gb/s"));
  ASSERT_EQ(mixed.num_devices(), 5U);
  EXPECT_EQ(mixed.device(2).name, "m0.cpu0");
  EXPECT_EQ(mixed.device(4).name, "m2.gpu0");
  EXPECT_EQ(mixed.device(4).memory, Bytes{12} << 30);
  EXPECT_EQ(bandwidth(mixed, 0, 1), 450 * kGB);
  EXPECT_EQ(bandwidth(mixed, 0, 2), 50 * kGB);
  EXPECT_EQ(bandwidth(mixed, 2, 3), 12'500'000'000);
  EXPECT_EQ(bandwidth(mixed, 3, 4), 12'500'000'000);
  EXPECT_EQ(mixed.link(0, 3)->channel, mixed.link(2, 4)->channel);
  EXPECT_TRUE(mixed.fully_linked());
  // Two sockets of four in each of two machines.
  const Cluster nested(preset_cluster("2x(2x(4xl4)@40GB/s)@12.5GB/s"));
  ASSERT_EQ(nested.num_devices(), 16U);
  EXPECT_EQ(nested.device(15).name, "m1.m1.gpu3");
  EXPECT_EQ(bandwidth(nested, 0, 3), 24 * kGB);
  EXPECT_EQ(bandwidth(nested, 0, 4), 40 * kGB);
  EXPECT_EQ(bandwidth(nested, 0, 8), 12'500'000'000);
  EXPECT_TRUE(nested.fully_linked());
}

TEST(Presets, machines_that_are_wrong_are_refused) {
  EXPECT_THAT(preset_error("2x(4xa100-nvlink)"),
              AllOf(HasSubstr("bandwidth is missing"), HasSubstr("2x(4xa100-nvlink)@25GB/s")));
  EXPECT_THAT(preset_error("2x(4xa100-nvlink)@25"), HasSubstr("bandwidth '25'"));
  EXPECT_THAT(preset_error("2x(4xa100-nvlink)25GB/s"), HasSubstr("'25GB/s' is left over"));
  EXPECT_THAT(preset_error("2x(4xa100-nvlink@25GB/s"), HasSubstr("')' is missing"));
  EXPECT_THAT(preset_error("2x(4xa10000)@25GB/s"), HasSubstr("'a10000'"));
  EXPECT_THAT(preset_error("2x(4xa100)+4xa100@25GB/s"), HasSubstr("expected a '('"));
  EXPECT_THAT(preset_error("0x(4xa100)@25GB/s"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(preset_error("1000x(4xa100)@25GB/s"), HasSubstr("more than 1024"));
  EXPECT_EQ(Cluster(preset_cluster("1x(4xa100)")).num_devices(), 4U) << "no network is needed";
}

TEST(Presets, capital_letters_do_not_matter) {
  EXPECT_EQ(preset_cluster("4xP100").devices[0].kind, "p100");
}

TEST(Presets, every_example_and_every_kind_is_a_fully_linked_cluster) {
  for (const std::string& name : example_presets()) {
    EXPECT_TRUE(looks_like_preset(name)) << name;
    EXPECT_TRUE(Cluster(preset_cluster(name)).fully_linked()) << name;
  }
  for (const DeviceKind& kind : built_in_device_kinds()) {
    const Cluster cluster(preset_cluster("2x" + kind.name));
    EXPECT_TRUE(cluster.fully_linked()) << kind.name;
    EXPECT_EQ(cluster.device(1).memory, kind.memory);
  }
}

TEST(Presets, one_device_needs_no_links) {
  const Cluster cluster(preset_cluster("1xh200"));
  EXPECT_EQ(cluster.num_devices(), 1U);
  EXPECT_EQ(cluster.num_channels(), 0U);
}

TEST(Presets, names_of_files_do_not_look_like_presets) {
  for (const char* name : {"", "4", "4x", "p100", "4xp100.yaml", "4xp100.json", "box/4xp100",
                           "cluster.yaml", "./4xp100", "4 x p100"}) {
    EXPECT_FALSE(looks_like_preset(name)) << name;
  }
  for (const char* name : {"4xp100", "16xnonsense", "2x3090", "1xh200+cpu", "2xa100@39.5GiB",
                           "2x(4xa100-nvlink)@25GB/s"}) {
    EXPECT_TRUE(looks_like_preset(name)) << name;
  }
}

TEST(Presets, errors_say_which_part_is_not_known) {
  EXPECT_THAT(preset_error("4xp10"), AllOf(HasSubstr("'p10'"), HasSubstr("did you mean 'p100'")));
  EXPECT_THAT(preset_error("2x3090"),
              AllOf(HasSubstr("'3090'"), HasSubstr("did you mean 'rtx3090'")));
  EXPECT_THAT(preset_error("8xa10g"), HasSubstr("did you mean 'a10'"));
  EXPECT_THAT(preset_error("2xa100+2xt5"), HasSubstr("unknown device kind 't5'"));
  EXPECT_THAT(preset_error("4xa100-nvlnk"), AllOf(HasSubstr("'nvlnk'"), HasSubstr("'nvlink'")));
  EXPECT_THAT(preset_error("4xt4-nvlink"), AllOf(HasSubstr("'nvlink'"), HasSubstr("t4")));
  EXPECT_THAT(preset_error("4xa100-tf1"), AllOf(HasSubstr("'tf1'"), HasSubstr("pcie or nvlink")));
  EXPECT_THAT(preset_error("4xk80-placeta"), HasSubstr("did you mean 'placeto'"));
  EXPECT_THAT(preset_error("0xp100"), HasSubstr("number of devices"));
  EXPECT_THAT(preset_error("99999999999999999999xp100"), HasSubstr("number of devices"));
  EXPECT_THAT(preset_error("1000xp100+1000xt4"), HasSubstr("more than 1024"));
  EXPECT_THAT(preset_error("4xp100@lots"), HasSubstr("memory 'lots'"));
  EXPECT_THAT(preset_error("4xp100@"), HasSubstr("memory ''"));
  EXPECT_THAT(preset_error("4xp100++cpu"), HasSubstr("'+'"));
  EXPECT_THAT(preset_error("4p100"), HasSubstr("expected an 'x'"));
  EXPECT_THAT(preset_error("cpu"), HasSubstr("as in 4xp100"));
  EXPECT_THAT(preset_error("9xh100-nvlink"), HasSubstr("at most 8"));
  EXPECT_THAT(preset_error("2xa100-nvlink+2xa100"), HasSubstr("nvlink and by pcie"));
}

// docs/clusters.md shows the figures to people; a row that says something else would mislead them.
TEST(Presets, the_documented_table_of_kinds_has_the_figures_of_the_code) {
  std::ifstream file(std::filesystem::path(EMPLACE_SOURCE_DIR) / "docs" / "clusters.md");
  ASSERT_TRUE(file.is_open());
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const DeviceKind& kind : built_in_device_kinds()) {
    std::string row = fmt::format("| `{}` |", kind.name);
    for (const char* dtype :
         {"float64", "float32", "tf32", "float16", "bfloat16", "float8", "int8"}) {
      const auto peak = kind.peak_flops.find(dtype);
      row += peak == kind.peak_flops.end() ? " – |" : fmt::format(" {:.6g} |", peak->second / 1e12);
    }
    row += fmt::format(" {:.6g} | {} | {:.6g} | {} |", kind.memory_bandwidth / 1e9,
                       kind.memory >> 30, kind.launch_us, kind.source);
    EXPECT_THAT(text, HasSubstr(row));
  }
}

}  // namespace
}  // namespace emplace
