// What a device can send at once on presets: docs/clusters.md.
#include <gtest/gtest.h>

#include "cluster/presets.h"
#include "graph/graph_builder.h"

#include "sim/simulator.h"

namespace emplace {
namespace {

// gpu0 makes 24 MB, and every other device waits for them.
Nanoseconds broadcast_time(ClusterSpec cluster, std::int64_t faster = 1) {
  for (LinkRule& rule : cluster.links) rule.bandwidth *= faster;
  const auto machines = std::make_shared<const Cluster>(std::move(cluster));
  GraphBuilder builder("broadcast");
  const auto add = [&](const std::string& name, std::vector<TensorId> inputs) {
    return builder.add({.name = name,
                        .type = "compute",
                        .inputs = std::move(inputs),
                        .time_us = {{"*", Decimal{1, 0}}}},
                       {{.bytes = 24'000'000}})[0];
  };
  const TensorId made = add("make", {});
  Placement placement{0};
  for (DeviceId device = 1; device < machines->num_devices(); ++device) {
    add("use" + std::to_string(device), {made});
    placement.push_back(device);
  }
  const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()), machines);
  return Simulator(problem).run(placement, {}).step;
}

constexpr Nanoseconds kOps = 2'000;
constexpr Nanoseconds kTransfer = 1'000'000;  // 24 MB at 24 GB/s
constexpr Nanoseconds kLatency = 10'000;

TEST(PresetLinks, a_pcie_device_sends_to_one_other_at_a_time) {
  EXPECT_EQ(broadcast_time(preset_cluster("8xl4")), kOps + 7 * (kTransfer + kLatency));
}

TEST(PresetLinks, twice_the_bandwidth_halves_what_goes_through_a_slot) {
  EXPECT_EQ(broadcast_time(preset_cluster("8xl4"), 2), kOps + 7 * (kTransfer / 2 + kLatency));
}

TEST(PresetLinks, machines_send_to_one_other_at_a_time) {
  // Three within the machine, by NVLink; four to the other machine, which take longer.
  EXPECT_EQ(broadcast_time(preset_cluster("2x(4xa100-nvlink)@24GB/s")),
            kOps + 4 * (kTransfer + 2 * kLatency));
}

}  // namespace
}  // namespace emplace
