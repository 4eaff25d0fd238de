#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/device_kinds.h"
#include "cluster/presets.h"

#include "io/cluster_yaml_writer.h"
#include "io/file.h"
#include "io/readers.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string data(const std::string& name) {
  return read_file(
      (std::filesystem::path(EMPLACE_SOURCE_DIR) / "tests/data/cluster_yaml" / name).string());
}

std::string yaml_error(const std::string& text) {
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

constexpr const char* kMachines = R"(format: emplace.cluster/1
name: two nodes and a store
kinds: {small: {like: a100, memory: 40GiB}}
machines:
- {name: node, count: 2, preset: 4xa100-nvlink}
- name: old
  devices: [{name: gpu, kind: small, count: 2}, {name: cpu0, kind: cpu}]
  links:
  - {bandwidth: 12GB/s, channel: out}
  - {from: small, to: cpu0, bandwidth: 6GB/s, channel: root}
network:
- {bandwidth: 200Gb/s}
- {from: "node*", to: old, bandwidth: 10GB/s, latency_us: 50, channel: pair}
devices:
- {name: spare, kind: t4}
links:
- {from: spare, to: old.cpu0, bandwidth: 1GB/s}
- {from: old.cpu0, to: spare, bandwidth: 1GB/s}
)";

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
  specs.push_back(read_cluster_yaml(kMachines).spec());
  specs.push_back(preset_cluster("2x(2x(4xl4)@40GB/s)@12.5GB/s"));
  specs.push_back(preset_cluster("1x(8xh100-nvlink)+2x(4xl4+cpu)@100Gb/s"));
  ClusterSpec unlimited = preset_cluster("3x(2xp100)@100Gb/s");
  for (LinkRule& rule : unlimited.links) rule.channel = "unlimited";
  specs.push_back(unlimited);
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

TEST(ClusterYaml, writes_machines) {
  const std::string text = write_cluster_yaml(preset_cluster("3x(2xp100)@100Gb/s"));
  EXPECT_THAT(text, HasSubstr("  - name: m\n    count: 3\n    devices:\n"
                              "      - {name: gpu0, kind: p100, memory: 16GiB}\n"));
  EXPECT_THAT(text, HasSubstr("network:\n  - {from: \"*\", to: \"*\", bandwidth: 12.5GB/s, "
                              "latency_us: 20, channel: out}\n"));
  EXPECT_THAT(text, Not(HasSubstr("m0")));
}

// Rules in another order mean something else, so such a cluster is not written as machines.
TEST(ClusterYaml, writes_as_it_is_what_only_looks_like_machines) {
  ClusterSpec spec = preset_cluster("2x(2xp100)@1GB/s");
  spec.devices.insert(spec.devices.begin(), {.name = "first", .kind = "t4", .memory = 1});
  const std::string late = write_cluster_yaml(spec);
  EXPECT_THAT(late, Not(HasSubstr("machines:")));
  expect_equal(Cluster(spec), read_cluster_yaml(late));
  spec = preset_cluster("2x(2xp100)@1GB/s");
  std::reverse(spec.links.begin(), spec.links.end());
  const std::string reversed = write_cluster_yaml(spec);
  EXPECT_THAT(reversed, HasSubstr("links:\n  - {from: \"m1.*\""));
  expect_equal(Cluster(spec), read_cluster_yaml(reversed));
}

TEST(ClusterYaml, writes_figures_as_people_do) {
  const std::string text = write_cluster_yaml(preset_cluster("2xp100"));
  EXPECT_THAT(text, HasSubstr("memory_bandwidth: 732GB/s"));
  EXPECT_THAT(text, HasSubstr("float32: 9.3e12"));
  EXPECT_THAT(text, HasSubstr("{name: gpu1, kind: p100, memory: 16GiB}"));
  EXPECT_THAT(text, HasSubstr("bandwidth: 12GB/s, latency_us: 10, channel: out}"));
  EXPECT_THAT(write_cluster_yaml(preset_cluster("1xcpu")), HasSubstr("204.8GB/s"));
}

TEST(ClusterYaml, unknown_fields_are_errors_with_a_suggestion) {
  EXPECT_THAT(yaml_error(file_with("name: a, kind: p100, memroy: 1GB")),
              AllOf(HasSubstr("line 3"), HasSubstr("device 'a'"), HasSubstr("'memroy'"),
                    HasSubstr("did you mean 'memory'")));
  EXPECT_THAT(yaml_error(file_with("name: a, kind: p100", "bandwidth: 1GB/s, latency: 3")),
              AllOf(HasSubstr("line 5"), HasSubstr("link * -> *"), HasSubstr("'latency_us'")));
  EXPECT_THAT(yaml_error(file_with("name: a, kind: p100", "bandwidth: 1GB/s", "link: []")),
              AllOf(HasSubstr("line 6"), HasSubstr("'links'")));
  EXPECT_THAT(
      yaml_error(file_with("name: a, kind: p100", "bandwidth: 1GB/s", "kinds: {p100: {flops: 1}}")),
      AllOf(HasSubstr("kind 'p100'"), HasSubstr("'flops'")));
}

TEST(ClusterYaml, wrong_values_name_line_device_field_and_what_was_expected) {
  const auto device = [](const std::string& fields) {
    return yaml_error(file_with("name: a, kind: p100, " + fields));
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
  EXPECT_THAT(yaml_error(file_with("kind: p100")), HasSubstr("name: is missing"));
  EXPECT_THAT(yaml_error(file_with("name: a")), HasSubstr("kind: is missing"));
  EXPECT_THAT(yaml_error(file_with("name: a, kind: p10")), HasSubstr("did you mean 'p100'"));
}

TEST(ClusterYaml, wrong_links_and_kinds_are_named) {
  const std::string device = "name: a, kind: p100";
  EXPECT_THAT(yaml_error(file_with(device, "from: a")), HasSubstr("bandwidth: is missing"));
  EXPECT_THAT(yaml_error(file_with(device, "bandwidth: 12Gb")), HasSubstr("'12Gb'"));
  for (const char* amount : {"24", "24GB", "100Gb", "24 gigs"}) {
    EXPECT_THAT(yaml_error(file_with(device, std::string("bandwidth: ") + amount)),
                AllOf(HasSubstr(std::string("bandwidth: '") + amount + "'"),
                      HasSubstr("12GB/s or 100Gb/s")));
  }
  EXPECT_THAT(yaml_error(file_with(device, "bandwidth: 0GB/s")), HasSubstr("bandwidth"));
  EXPECT_THAT(yaml_error(file_with(device, "from: b, bandwidth: 1B/s")), HasSubstr("link b -> *"));
  EXPECT_THAT(yaml_error(file_with(device, "from: {b: 1}, bandwidth: 1B/s")),
              HasSubstr("from: expected a name, a pattern, or a list"));
  const auto kind = [&](const std::string& fields) {
    return yaml_error(
        file_with("name: a, kind: own", "bandwidth: 1B/s", "kinds: {own: {" + fields + "}}"));
  };
  EXPECT_THAT(kind("launch_us: 1"), HasSubstr("kind 'own' has none"));
  EXPECT_THAT(kind("memory: 1, peak_flops: 3"), HasSubstr("peak_flops"));
  EXPECT_THAT(kind("memory: 1, peak_flops: {float32: many}"), HasSubstr("float32: 'many'"));
  EXPECT_THAT(kind("memory: 1, launch_us: -1"), HasSubstr("launch_us: '-1'"));
  EXPECT_THAT(kind("like: p10"), AllOf(HasSubstr("like: 'p10'"), HasSubstr("'p100'")));
}

TEST(ClusterYaml, a_name_that_is_not_given_is_what_the_caller_says) {
  EXPECT_EQ(read_cluster_yaml(file_with("name: a, kind: p100"), "two.yaml").name(), "two.yaml");
}

TEST(ClusterYaml, a_kind_can_be_like_another) {
  const Cluster cluster = read_cluster_yaml(R"(format: emplace.cluster/1
kinds:
  titan: {like: rtx3090, memory_bandwidth: 1100GB/s}
  titan-small: {like: titan, memory: 12GiB}
devices: [{name: a, kind: titan}, {name: b, kind: titan-small}]
)");
  const DeviceKind& built_in = *find_device_kind("rtx3090");
  EXPECT_EQ(cluster.kind_of(0).peak_flops, built_in.peak_flops);
  EXPECT_EQ(cluster.kind_of(0).memory, built_in.memory);
  EXPECT_EQ(cluster.kind_of(0).launch_us, built_in.launch_us);
  EXPECT_EQ(cluster.kind_of(0).memory_bandwidth, 1.1e12);
  EXPECT_EQ(cluster.kind_of(1).memory_bandwidth, 1.1e12);
  EXPECT_EQ(cluster.device(1).memory, Bytes{12} << 30);
}

TEST(ClusterYaml, ends_of_links_are_patterns_and_lists) {
  const Cluster cluster = read_cluster_yaml(R"(format: emplace.cluster/1
devices: [{name: a, kind: p100}, {name: b, kind: p100}, {name: c, kind: t4}]
links:
- {from: [a, c], to: "b", bandwidth: 8Gb/s}
- {from: "b, c", to: [a], bandwidth: 2GB/s}
- {from: "t*", to: a, bandwidth: 3GB/s}
)");
  EXPECT_EQ(cluster.link(0, 1)->bandwidth, 1'000'000'000);
  EXPECT_EQ(cluster.link(2, 1)->bandwidth, 1'000'000'000);
  EXPECT_EQ(cluster.link(1, 0)->bandwidth, 2'000'000'000);
  EXPECT_EQ(cluster.link(2, 0)->bandwidth, 3'000'000'000);
  EXPECT_EQ(cluster.link(0, 2), nullptr);
}

TEST(ClusterYaml, reads_machines) {
  const Cluster cluster = read_cluster_yaml(kMachines);
  ASSERT_EQ(cluster.num_devices(), 12U);
  EXPECT_EQ(cluster.device(0).name, "node0.gpu0");
  EXPECT_EQ(cluster.device(7).name, "node1.gpu3");
  EXPECT_EQ(cluster.device(9).name, "old.gpu1");
  EXPECT_EQ(cluster.device(9).memory, Bytes{40} << 30);
  EXPECT_EQ(cluster.device(10).name, "old.cpu0");
  EXPECT_EQ(cluster.device(11).name, "spare");
  const auto channel = [&](DeviceId from, DeviceId to) {
    return cluster.channel_name(cluster.link(from, to)->channel);
  };
  EXPECT_EQ(cluster.link(0, 3)->bandwidth, 300'000'000'000);
  EXPECT_EQ(channel(0, 3), "node0.gpu0->*");
  EXPECT_EQ(cluster.link(0, 4)->bandwidth, 25'000'000'000);
  EXPECT_EQ(cluster.link(0, 4)->latency, 20'000);
  EXPECT_EQ(channel(0, 4), "node0->*");
  EXPECT_EQ(channel(3, 7), "node0->*");
  EXPECT_EQ(cluster.link(4, 8)->bandwidth, 10'000'000'000);
  EXPECT_EQ(cluster.link(4, 8)->latency, 50'000);
  EXPECT_EQ(channel(4, 8), "node1->old");
  EXPECT_EQ(channel(8, 4), "old->*");
  EXPECT_EQ(cluster.link(8, 9)->bandwidth, 12'000'000'000);
  EXPECT_EQ(cluster.link(8, 10)->bandwidth, 6'000'000'000);
  EXPECT_EQ(channel(8, 10), "old.root");
  EXPECT_EQ(cluster.link(11, 0), nullptr);
  EXPECT_EQ(cluster.link(11, 10)->bandwidth, 1'000'000'000);
}

TEST(ClusterYaml, wrong_machines_are_named) {
  const auto machine = [](const std::string& fields, const std::string& more = "") {
    return yaml_error("format: emplace.cluster/1\nmachines:\n- {" + fields + "}\n" + more);
  };
  EXPECT_THAT(machine("preset: 2xp100"), HasSubstr("machine 0: name: is missing"));
  EXPECT_THAT(machine("name: m"), AllOf(HasSubstr("line 3: machine 'm'"), HasSubstr("preset")));
  EXPECT_THAT(machine("name: m, preset: 2xp100, devices: [{name: a, kind: t4}]"),
              HasSubstr("both devices and a preset"));
  EXPECT_THAT(machine("name: m, preset: 2xp100, gpus: 3"), HasSubstr("unknown field 'gpus'"));
  EXPECT_THAT(machine("name: m, preset: 2xp100", "network: [{from: n, bandwidth: 1GB/s}]"),
              AllOf(HasSubstr("'n' is no machine"), HasSubstr("expected m")));
  EXPECT_THAT(machine("name: m, preset: 2xp100", "network: [{latency_us: 1}]"),
              HasSubstr("network * -> *: bandwidth: is missing"));
  EXPECT_THAT(yaml_error(file_with("name: a, kind: p100", "bandwidth: 1GB/s",
                                   "network: [{bandwidth: 1GB/s}]")),
              HasSubstr("network: joins machines"));
}

TEST(ClusterYaml, files_that_are_not_clusters_are_refused) {
  EXPECT_THAT(yaml_error(""), HasSubstr("empty"));
  EXPECT_THAT(yaml_error("just text"), HasSubstr("expected a mapping"));
  EXPECT_THAT(yaml_error("devices: []"), HasSubstr("format: is missing"));
  EXPECT_THAT(yaml_error("format: emplace.graph/1"), HasSubstr("'emplace.graph/1'"));
  EXPECT_THAT(yaml_error("format: emplace.cluster/1"), HasSubstr("devices"));
  EXPECT_THAT(yaml_error("format: emplace.cluster/1\ndevices: []"), HasSubstr("line 2"));
  EXPECT_THAT(yaml_error("format: emplace.cluster/1\ndevices: [{"), HasSubstr("is not YAML"));
  EXPECT_THAT(yaml_error("a: 1\n---\nb: 2\n"), HasSubstr("one document"));
  EXPECT_THAT(yaml_error(std::string(100'000, '[')), HasSubstr("is not YAML"));
}

TEST(ClusterYaml, refuses_what_is_no_document_or_more_than_one) {
  for (const char* text : {",", ", ,", "]", "}", "a: 1\n---\nb: 2\n", "a: 1\n]"}) {
    EXPECT_NE(error_text([&] { read_cluster_yaml(text); }), "") << text;
  }
  EXPECT_THAT(error_text([] { read_cluster_yaml(""); }), ::testing::HasSubstr("the file is empty"));
  EXPECT_THAT(error_text([] { read_cluster_yaml("# nothing\n"); }),
              ::testing::HasSubstr("the file is empty"));
}

TEST(ClusterYaml, refuses_peaks_of_unknown_dtypes_and_slowdowns_of_nothing) {
  const auto refusal = [](const std::string& dtype, const std::string& slowdown) {
    return error_text([&] {
      read_cluster_yaml("format: emplace.cluster/1\nkinds: {gpu: {peak_flops: {" + dtype +
                        ": 1e12}, memory_bandwidth: 1GB/s, memory: 1GiB, launch_us: 1}}\n"
                        "devices: [{name: d, kind: gpu, slowdown: " +
                        slowdown + "}]\n");
    });
  };
  EXPECT_EQ(refusal("tf32", "1.5"), "");
  EXPECT_THAT(refusal("float33", "1"), ::testing::HasSubstr("'float33' is not known"));
  EXPECT_THAT(refusal("float32", "1e-999999"), ::testing::HasSubstr("device 'd': slowdown"));
}

}  // namespace
}  // namespace emplace
