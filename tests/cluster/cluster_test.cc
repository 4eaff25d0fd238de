#include "cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/device_kinds.h"

namespace emplace {
namespace {

using testing::HasSubstr;

ClusterSpec three_devices() {
  ClusterSpec spec;
  spec.name = "three";
  spec.devices = {{.name = "a", .kind = "p100", .memory = 100},
                  {.name = "b", .kind = "p100", .memory = 100},
                  {.name = "c", .kind = "cpu", .memory = kUnlimited}};
  spec.links = {{.bandwidth = 1'000'000'000}};
  return spec;
}

std::string cluster_error(const ClusterSpec& spec) {
  try {
    const Cluster cluster(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Cluster, later_rules_win_and_match_names_and_kinds) {
  ClusterSpec spec = three_devices();
  spec.links.push_back({.from = "p100", .to = "p100", .bandwidth = 2'000'000'000});
  spec.links.push_back({.from = "b", .to = "a", .bandwidth = 3'000'000'000, .latency = 7});
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.link(0, 1)->bandwidth, 2'000'000'000);
  EXPECT_EQ(cluster.link(1, 0)->bandwidth, 3'000'000'000);
  EXPECT_EQ(cluster.link(1, 0)->latency, 7);
  EXPECT_EQ(cluster.link(0, 2)->bandwidth, 1'000'000'000);
  EXPECT_EQ(cluster.link(0, 0), nullptr);
}

TEST(Cluster, ends_of_rules_are_patterns_and_lists) {
  ClusterSpec spec = three_devices();
  spec.devices[0].name = "node0.gpu0";
  spec.devices[1].name = "node1.gpu0";
  spec.devices[2].name = "node1.cpu0";
  spec.links = {{.from = "*.gpu0", .to = "*.gpu0", .bandwidth = 1},
                {.from = "node0.gpu0, node1.gpu0", .to = "cpu", .bandwidth = 2},
                {.from = "node1.cpu", .to = "node1.*", .bandwidth = 3},
                {.from = "node1.*", .to = "node0.p100", .bandwidth = 4, .channel = "uplink"}};
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.link(0, 1)->bandwidth, 1);
  EXPECT_EQ(cluster.link(0, 2)->bandwidth, 2);
  EXPECT_EQ(cluster.link(1, 2)->bandwidth, 2);
  EXPECT_EQ(cluster.link(2, 1)->bandwidth, 3);
  EXPECT_EQ(cluster.link(1, 0)->bandwidth, 4);
  EXPECT_EQ(cluster.link(1, 0)->channel, cluster.link(2, 0)->channel);
}

TEST(Cluster, every_name_in_a_list_has_to_be_known) {
  ClusterSpec spec = three_devices();
  spec.links[0].from = "a,bb";
  EXPECT_THAT(cluster_error(spec), HasSubstr("link a,bb -> *: 'bb' is neither a device"));
  spec = three_devices();
  spec.devices[0].name = "a,b";
  EXPECT_THAT(cluster_error(spec), HasSubstr("device 'a,b': a comma"));
}

TEST(Cluster, pair_channels_are_one_per_ordered_pair) {
  const Cluster cluster(three_devices());
  EXPECT_EQ(cluster.num_channels(), 6U);
  EXPECT_NE(cluster.link(0, 1)->channel, cluster.link(1, 0)->channel);
}

TEST(Cluster, out_and_in_channels_are_one_per_end) {
  ClusterSpec spec = three_devices();
  spec.links[0].channel = "out";
  const Cluster out(spec);
  EXPECT_EQ(out.num_channels(), 3U);
  EXPECT_EQ(out.link(0, 1)->channel, out.link(0, 2)->channel);
  EXPECT_NE(out.link(0, 1)->channel, out.link(1, 0)->channel);
  spec.links[0].channel = "in";
  const Cluster in(spec);
  EXPECT_EQ(in.num_channels(), 3U);
  EXPECT_EQ(in.link(0, 2)->channel, in.link(1, 2)->channel);
  EXPECT_NE(in.link(0, 1)->channel, in.link(0, 2)->channel);
}

TEST(Cluster, a_named_channel_is_shared_by_all_pairs_of_its_rules) {
  ClusterSpec spec = three_devices();
  spec.links.push_back({.from = "cpu", .bandwidth = 5, .channel = "root"});
  spec.links.push_back({.to = "cpu", .bandwidth = 6, .channel = "root"});
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.num_channels(), 3U);  // a->b, b->a, root
  EXPECT_EQ(cluster.link(2, 0)->channel, cluster.link(1, 2)->channel);
  EXPECT_EQ(cluster.channel_name(cluster.link(2, 0)->channel), "root");
}

TEST(Cluster, unlimited_channels_are_each_ordered_pairs_own) {
  ClusterSpec spec = three_devices();
  spec.links.push_back({.from = "a", .bandwidth = 5, .channel = "unlimited"});
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.num_channels(), 6U);
  for (DeviceId from = 0; from < 3; ++from) {
    for (DeviceId to = 0; to < 3; ++to) {
      if (from == to) continue;
      const Link& link = *cluster.link(from, to);
      EXPECT_EQ(link.unlimited, from == 0);
      EXPECT_EQ(cluster.is_unlimited(link.channel), from == 0);
    }
  }
  EXPECT_EQ(cluster.channel_name(cluster.link(0, 1)->channel), "a->b (unlimited)");
  spec.links[1].hold = 1;
  EXPECT_THAT(cluster_error(spec), HasSubstr("link a -> *: hold_us: expected none"));
  spec.links[1].hold = 0;
  spec.links[1].multicast = true;
  EXPECT_THAT(cluster_error(spec), HasSubstr("link a -> *: multicast: expected false"));
}

TEST(Cluster, pairs_without_a_rule_have_no_link) {
  ClusterSpec spec = three_devices();
  spec.links = {{.from = "a", .to = "b", .bandwidth = 1}};
  const Cluster cluster(spec);
  EXPECT_NE(cluster.link(0, 1), nullptr);
  EXPECT_EQ(cluster.link(1, 0), nullptr);
  EXPECT_THROW(cluster.require_linked(), Error);  // c
}

TEST(Cluster, is_fully_linked_once_every_ordered_pair_is) {
  ClusterSpec spec = three_devices();
  EXPECT_TRUE(Cluster(spec).fully_linked());
  spec.links = {{.from = "*", .to = "a", .bandwidth = 1'000'000'000},
                {.from = "*", .to = "b", .bandwidth = 1'000'000'000},
                {.from = "a", .to = "c", .bandwidth = 1'000'000'000}};
  EXPECT_FALSE(Cluster(spec).fully_linked());
  spec.links.push_back({.from = "b", .to = "c", .bandwidth = 1'000'000'000});
  EXPECT_TRUE(Cluster(spec).fully_linked());
}

TEST(Cluster, knows_which_devices_are_cpus) {
  ClusterSpec spec = three_devices();
  spec.kinds = {{.name = "cpu96", .peak_flops = {}}};
  spec.devices.push_back({.name = "d", .kind = "cpu16", .memory = 100});
  spec.devices.push_back({.name = "e", .kind = "cpu96", .memory = 100});
  const Cluster cluster(spec);
  const bool expected[] = {false, false, true, true, true};
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    EXPECT_EQ(cluster.is_cpu(id), expected[id]) << cluster.device(id).name;
  }
}

TEST(Cluster, own_kinds_win_over_built_in_ones) {
  ClusterSpec spec = three_devices();
  spec.kinds = {{.name = "p100", .peak_flops = {{"float32", 1e12}}, .memory = 5}};
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.kind_of(0).peak_flops.at("float32"), 1e12);
  EXPECT_EQ(cluster.kind_of(2).memory, find_device_kind("cpu")->memory);
}

TEST(Cluster, transfers_last_latency_and_whole_nanoseconds_rounded_up) {
  const Link link{.channel = 0, .bandwidth = 7'600'000'000, .latency = 10};
  EXPECT_EQ(transfer_time(link, 760'000), 100'010);
  EXPECT_EQ(transfer_time(link, 1), 11);
  EXPECT_EQ(transfer_time(link, 0), 10);
  EXPECT_THROW(transfer_time({.channel = 0, .bandwidth = 1}, kUnlimited), Error);
}

TEST(Cluster, errors_name_the_device_or_the_rule) {
  ClusterSpec spec = three_devices();
  spec.devices[1].name = "a";
  EXPECT_THAT(cluster_error(spec), HasSubstr("'a'"));
  spec = three_devices();
  spec.devices[1].kind = "p1000";
  EXPECT_THAT(cluster_error(spec), HasSubstr("device 'b': kind: 'p1000'"));
  spec = three_devices();
  spec.links.push_back({.from = "a", .to = "d", .bandwidth = 1});
  EXPECT_THAT(cluster_error(spec), HasSubstr("link a -> d"));
  spec = three_devices();
  spec.links[0].bandwidth = 0;
  EXPECT_THAT(cluster_error(spec), HasSubstr("bandwidth"));
  spec = three_devices();
  spec.devices[2].slowdown = {0, 0};
  EXPECT_THAT(cluster_error(spec), HasSubstr("device 'c': slowdown"));
  spec.devices.clear();
  EXPECT_THAT(cluster_error(spec), HasSubstr("devices"));
}

TEST(DeviceKinds, are_complete_and_have_a_source) {
  for (const DeviceKind& kind : built_in_device_kinds()) {
    EXPECT_EQ(find_device_kind(kind.name), &kind) << kind.name << " is there twice";
    EXPECT_TRUE(kind.peak_flops.contains("float32")) << kind.name;
    EXPECT_GT(kind.memory_bandwidth, 5e10) << kind.name;
    EXPECT_GE(kind.memory, Bytes{8} << 30) << kind.name;
    EXPECT_GT(kind.launch_us, 0) << kind.name;
    EXPECT_FALSE(kind.source.empty()) << kind.name;
  }
  EXPECT_EQ(find_device_kind("p1000"), nullptr);
}

TEST(DeviceKinds, narrower_types_are_never_slower) {
  for (const DeviceKind& kind : built_in_device_kinds()) {
    double slowest = 0;
    for (const char* dtype : {"float64", "float32", "tf32", "float16", "float8"}) {
      const auto peak = kind.peak_flops.find(dtype);
      if (peak == kind.peak_flops.end()) continue;
      EXPECT_GE(peak->second, slowest) << kind.name << " " << dtype;
      slowest = peak->second;
    }
  }
}

}  // namespace
}  // namespace emplace
