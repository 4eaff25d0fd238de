#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/device_kinds.h"
#include "cluster/presets.h"

#include "io/cluster_yaml_writer.h"
#include "io/file.h"
#include "io/readers.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string data(const std::string& name) {
  return read_file(
      (std::filesystem::path(EMPLACE_SOURCE_DIR) / "tests/data/cluster_yaml" / name).string());
}

std::string error_of(const std::string& text) {
  try {
    read_cluster_yaml(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

// A valid file around the lines of one device and one link.
std::string file_with(const std::string& device, const std::string& link = "bandwidth: 1GB/s",
                      const std::string& more = "") {
  return "format: emplace.cluster/1\ndevices:\n- {" + device + "}\nlinks:\n- {" + link + "}\n" +
         more;
}

void expect_equal(const Cluster& a, const Cluster& b) {
  EXPECT_EQ(a.name(), b.name());
  ASSERT_EQ(a.num_devices(), b.num_devices());
  ASSERT_EQ(a.num_channels(), b.num_channels());
  for (ChannelId i = 0; i < a.num_channels(); ++i) EXPECT_EQ(a.channel_name(i), b.channel_name(i));
  for (DeviceId i = 0; i < a.num_devices(); ++i) {
    EXPECT_EQ(a.device(i).name, b.device(i).name);
    EXPECT_EQ(a.device(i).kind, b.device(i).kind);
    EXPECT_EQ(a.device(i).memory, b.device(i).memory);
    EXPECT_EQ(a.device(i).gap, b.device(i).gap);
    EXPECT_EQ(a.device(i).slowdown, b.device(i).slowdown);
    EXPECT_EQ(a.device(i).free_communication, b.device(i).free_communication);
    EXPECT_EQ(a.kind_of(i).peak_flops, b.kind_of(i).peak_flops);
    EXPECT_EQ(a.kind_of(i).memory_bandwidth, b.kind_of(i).memory_bandwidth);
    EXPECT_EQ(a.kind_of(i).memory, b.kind_of(i).memory);
    EXPECT_EQ(a.kind_of(i).launch_us, b.kind_of(i).launch_us);
    EXPECT_EQ(a.kind_of(i).source, b.kind_of(i).source);
    for (DeviceId j = 0; j < a.num_devices(); ++j) {
      const Link* one = a.link(i, j);
      const Link* two = b.link(i, j);
      ASSERT_EQ(one == nullptr, two == nullptr);
      if (one == nullptr) continue;
      EXPECT_EQ(one->channel, two->channel);
      EXPECT_EQ(one->bandwidth, two->bandwidth);
      EXPECT_EQ(one->latency, two->latency);
      EXPECT_EQ(one->hold, two->hold);
      EXPECT_EQ(one->multicast, two->multicast);
    }
  }
}

TEST(ClusterYaml, reads_kinds_devices_and_links) {
  const Cluster cluster = read_cluster_yaml(data("box.yaml"));
  EXPECT_EQ(cluster.name(), "two P100, an NPU and their host");
  ASSERT_EQ(cluster.num_devices(), 4U);
  EXPECT_EQ(cluster.device(0).name, "gpu1");
  EXPECT_EQ(cluster.device(1).name, "gpu2");
  EXPECT_EQ(cluster.device(1).memory, Bytes{16} << 30);
  EXPECT_EQ(cluster.device(2).memory, 1'500'000'000);
  EXPECT_EQ(cluster.device(2).gap, 5'700);
  EXPECT_EQ(cluster.device(2).slowdown, (Decimal{125, -2}));
  EXPECT_EQ(cluster.device(3).memory, kUnlimited);
  EXPECT_TRUE(cluster.device(3).free_communication);
  EXPECT_FALSE(cluster.device(2).free_communication);
  EXPECT_EQ(cluster.kind_of(2).peak_flops.at("float16"), 32.5e12);
  EXPECT_EQ(cluster.kind_of(2).launch_us, 0.7);
  EXPECT_EQ(cluster.link(0, 1)->bandwidth, 7'600'000'000);
  EXPECT_EQ(cluster.link(0, 1)->hold, 25'000);
  EXPECT_TRUE(cluster.link(0, 1)->multicast);
  EXPECT_EQ(cluster.link(0, 1)->channel, cluster.link(0, 3)->channel);
  EXPECT_EQ(cluster.link(3, 1)->latency, 12'001);  // 12000.5 ns, half up
  EXPECT_EQ(cluster.channel_name(cluster.link(3, 1)->channel), "pcie-root");
}

TEST(ClusterYaml, a_kind_with_a_built_in_name_changes_only_what_it_gives) {
  const Cluster cluster = read_cluster_yaml(data("box.yaml"));
  EXPECT_EQ(cluster.kind_of(0).memory_bandwidth, 700e9);
  EXPECT_EQ(cluster.kind_of(0).peak_flops, find_device_kind("p100")->peak_flops);
}

TEST(ClusterYaml, reads_json) {
  const Cluster cluster = read_cluster_yaml(data("box.json"));
  EXPECT_EQ(cluster.name(), "a \"JSON\" box");
  EXPECT_EQ(cluster.device(0).memory, Bytes{16} << 30);
  EXPECT_TRUE(cluster.device(1).free_communication);
  EXPECT_EQ(cluster.link(0, 1)->latency, 10'000);
  EXPECT_EQ(cluster.link(1, 0), nullptr);
}

TEST(ClusterYaml, what_is_written_reads_back_equal) {
  std::vector<ClusterSpec> specs;
  for (const std::string& name : example_presets()) specs.push_back(preset_cluster(name));
  specs.push_back(read_cluster_yaml(data("box.yaml")).spec());
  specs.push_back(read_cluster_yaml(data("box.json")).spec());
  for (const ClusterSpec& spec : specs) {
    const std::string text = write_cluster_yaml(spec);
    SCOPED_TRACE(text);
    const Cluster again = read_cluster_yaml(text);
    expect_equal(Cluster(spec), again);
    EXPECT_EQ(write_cluster_yaml(again.spec()), text);
  }
}

TEST(ClusterYaml, odd_names_and_numbers_survive_writing) {
  ClusterSpec spec;
  spec.name = "line one\nline two: \"#quoted\" \\ {a}";
  spec.kinds = {{.name = "null",
                 .peak_flops = {{"float32", 1.0 / 3 * 1e13}},
                 .memory_bandwidth = 123'456'789,
                 .memory = 12'345,
                 .launch_us = 0.1 + 0.2,
                 .source = "yes: [really]"}};
  spec.devices = {{.name = "- a", .kind = "null", .memory = 1, .gap = 1},
                  {.name = "1.5", .kind = "null", .memory = 0, .slowdown = {1, -7}},
                  {.name = "true", .kind = "null", .memory = kUnlimited, .slowdown = {8, 3}},
                  {.name = "\xc3\xa9", .kind = "null", .memory = 999, .slowdown = {3, 9}}};
  spec.links = {{.from = "- a", .bandwidth = 1, .latency = 1, .hold = 999, .channel = "bus: 1"}};
  expect_equal(Cluster(spec), read_cluster_yaml(write_cluster_yaml(spec)));
}

TEST(ClusterYaml, writes_figures_as_people_do) {
  const std::string text = write_cluster_yaml(preset_cluster("2xp100"));
  EXPECT_THAT(text, HasSubstr("memory_bandwidth: 732GB/s"));
  EXPECT_THAT(text, HasSubstr("float32: 9.3e12"));
  EXPECT_THAT(text, HasSubstr("{name: gpu1, kind: p100, memory: 16GiB}"));
  EXPECT_THAT(text, HasSubstr("bandwidth: 12GB/s, latency_us: 10, channel: pair}"));
  EXPECT_THAT(write_cluster_yaml(preset_cluster("1xcpu")), HasSubstr("204.8GB/s"));
}

TEST(ClusterYaml, unknown_fields_are_errors_with_a_suggestion) {
  EXPECT_THAT(error_of(file_with("name: a, kind: p100, memroy: 1GB")),
              AllOf(HasSubstr("line 3"), HasSubstr("device 'a'"), HasSubstr("'memroy'"),
                    HasSubstr("did you mean 'memory'")));
  EXPECT_THAT(error_of(file_with("name: a, kind: p100", "bandwidth: 1GB/s, latency: 3")),
              AllOf(HasSubstr("line 5"), HasSubstr("link * -> *"), HasSubstr("'latency_us'")));
  EXPECT_THAT(error_of(file_with("name: a, kind: p100", "bandwidth: 1GB/s", "link: []")),
              AllOf(HasSubstr("line 6"), HasSubstr("'links'")));
  EXPECT_THAT(
      error_of(file_with("name: a, kind: p100", "bandwidth: 1GB/s", "kinds: {p100: {flops: 1}}")),
      AllOf(HasSubstr("kind 'p100'"), HasSubstr("'flops'")));
}

TEST(ClusterYaml, wrong_values_name_line_device_field_and_what_was_expected) {
  const auto device = [](const std::string& fields) {
    return error_of(file_with("name: a, kind: p100, " + fields));
  };
  EXPECT_THAT(device("memory: 16 gigs"),
              AllOf(HasSubstr("line 3: device 'a': memory: '16 gigs'"), HasSubstr("16GiB")));
  EXPECT_THAT(device("memory: -1"), HasSubstr("memory"));
  EXPECT_THAT(device("memory: [1]"), HasSubstr("memory: expected a single value"));
  EXPECT_THAT(device("gap_us: -0.5"), HasSubstr("gap_us: '-0.5'"));
  EXPECT_THAT(device("gap_us: 1e300"), HasSubstr("gap_us: is too large"));
  EXPECT_THAT(device("slowdown: fast"), HasSubstr("slowdown: 'fast'"));
  EXPECT_THAT(device("slowdown: 0"), HasSubstr("slowdown"));
  EXPECT_THAT(device("free_communication: maybe"), HasSubstr("expected true or false"));
  EXPECT_THAT(device("count: 0"), HasSubstr("count: '0'"));
  EXPECT_THAT(device("count: 2.5"), HasSubstr("count: '2.5'"));
  EXPECT_THAT(device("start: 2"), HasSubstr("start: is given without a count"));
  EXPECT_THAT(device("memory: 1GB, memory: 2GB"), HasSubstr("memory: is given twice"));
  EXPECT_THAT(error_of(file_with("kind: p100")), HasSubstr("name: is missing"));
  EXPECT_THAT(error_of(file_with("name: a")), HasSubstr("kind: is missing"));
  EXPECT_THAT(error_of(file_with("name: a, kind: p10")), HasSubstr("did you mean 'p100'"));
}

TEST(ClusterYaml, wrong_links_and_kinds_are_named) {
  const std::string device = "name: a, kind: p100";
  EXPECT_THAT(error_of(file_with(device, "from: a")), HasSubstr("bandwidth: is missing"));
  EXPECT_THAT(error_of(file_with(device, "bandwidth: 12Gb/s")), HasSubstr("'12Gb/s'"));
  EXPECT_THAT(error_of(file_with(device, "bandwidth: 0")), HasSubstr("bandwidth"));
  EXPECT_THAT(error_of(file_with(device, "from: b, bandwidth: 1")), HasSubstr("link b -> *"));
  const auto kind = [&](const std::string& fields) {
    return error_of(
        file_with("name: a, kind: own", "bandwidth: 1", "kinds: {own: {" + fields + "}}"));
  };
  EXPECT_THAT(kind("launch_us: 1"), HasSubstr("kind 'own' has none"));
  EXPECT_THAT(kind("memory: 1, peak_flops: 3"), HasSubstr("peak_flops"));
  EXPECT_THAT(kind("memory: 1, peak_flops: {float32: many}"), HasSubstr("float32: 'many'"));
  EXPECT_THAT(kind("memory: 1, launch_us: -1"), HasSubstr("launch_us: '-1'"));
}

TEST(ClusterYaml, files_that_are_not_clusters_are_refused) {
  EXPECT_THAT(error_of(""), HasSubstr("empty"));
  EXPECT_THAT(error_of("just text"), HasSubstr("expected a mapping"));
  EXPECT_THAT(error_of("devices: []"), HasSubstr("format: is missing"));
  EXPECT_THAT(error_of("format: emplace.graph/1"), HasSubstr("'emplace.graph/1'"));
  EXPECT_THAT(error_of("format: emplace.cluster/1"), HasSubstr("devices"));
  EXPECT_THAT(error_of("format: emplace.cluster/1\ndevices: []"), HasSubstr("line 2"));
  EXPECT_THAT(error_of("format: emplace.cluster/1\ndevices: [{"), HasSubstr("is not YAML"));
  EXPECT_THAT(error_of("a: 1\n---\nb: 2\n"), HasSubstr("one document"));
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("is not YAML"));
}

}  // namespace
}  // namespace emplace
