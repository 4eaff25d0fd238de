#include "sim/device_contents.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ModuleOp {
  std::string module;
  DeviceId device;
  std::int64_t us = 10;
};

// "a .. b", "a", or "a 40 %".
std::vector<std::string> said(const std::vector<HeldModules>& modules) {
  std::vector<std::string> result;
  for (const HeldModules& held : modules) {
    std::string text = held.count == 1 ? held.first : held.first + " .. " + held.last;
    if (!held.whole()) text += fmt::format(" {:.0f} %", 100 * held.share);
    result.push_back(text);
  }
  return result;
}

std::vector<DeviceContents> contents(const std::vector<ModuleOp>& ops) {
  TimedGraph graph;
  Placement placement;
  for (const ModuleOp& op : ops) {
    graph.add({.name = "op" + std::to_string(placement.size()),
               .type = "compute",
               .persistent_bytes = 100,
               .module = op.module},
              op.us);
    placement.push_back(op.device);
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(3));
  return device_contents(*problem, placement, infer_modules(problem->graph()));
}

TEST(DeviceContents, numbered_layers_are_a_range) {
  const auto held = contents({{"embed", 0},
                              {"layer.0.attention", 0},
                              {"layer.0.mlp", 0},
                              {"layer.1.attention", 0},
                              {"layer.1.mlp", 0},
                              {"layer.2.attention", 1},
                              {"layer.2.mlp", 1},
                              {"head", 1}});
  EXPECT_THAT(said(held[0].modules), ElementsAre("embed", "layer.0 .. layer.1"));
  EXPECT_THAT(said(held[1].modules), ElementsAre("layer.2", "head"));
  EXPECT_THAT(held[2].modules, IsEmpty());
  EXPECT_EQ(held[0].resident, 500);
  EXPECT_DOUBLE_EQ(held[0].work, 5.0 / 8);
  EXPECT_NEAR(held[0].modules[1].work, 4.0 / 5, 1e-9);
}

TEST(DeviceContents, a_gap_in_the_numbers_ends_a_range) {
  const auto held = contents({{"l.0", 0}, {"l.1", 0}, {"l.2", 1}, {"l.3", 0}, {"l.4", 0}});
  EXPECT_THAT(said(held[0].modules), ElementsAre("l.0 .. l.1", "l.3 .. l.4"));
  EXPECT_THAT(said(held[1].modules), ElementsAre("l.2"));
}

TEST(DeviceContents, modules_of_a_layer_are_said_by_its_name) {
  const auto held = contents({{"embed.word", 0}, {"embed.norm", 0}, {"head.a", 1}, {"head.b", 1}});
  EXPECT_THAT(said(held[0].modules), ElementsAre("embed"));
  EXPECT_THAT(said(held[1].modules), ElementsAre("head"));
}

TEST(DeviceContents, parts_of_a_module_have_shares) {
  const auto held = contents({{"l.0", 0, 30}, {"l.0", 1, 10}, {"l.1", 1, 50}, {"l.2", 1, 50}});
  EXPECT_THAT(said(held[0].modules), ElementsAre("l.0 75 %"));
  EXPECT_THAT(said(held[1].modules), ElementsAre("l.0 25 %", "l.1 .. l.2"));
}

TEST(DeviceContents, layers_in_part_are_a_range_of_their_own) {
  std::vector<ModuleOp> ops;
  for (int i = 0; i < 40; ++i) {
    ops.push_back({"net.layer." + std::to_string(i / 4), static_cast<DeviceId>(i % 2)});
  }
  for (int i = 10; i < 12; ++i) ops.push_back({"net.layer." + std::to_string(i), 0});
  const auto held = contents(ops);
  EXPECT_THAT(said(held[0].modules),
              ElementsAre("net.layer.0 .. net.layer.9 50 %", "net.layer.10 .. net.layer.11"));
  EXPECT_THAT(said(held[1].modules), ElementsAre("net.layer.0 .. net.layer.9 50 %"));
  EXPECT_EQ(held[1].modules[0].count, 10U);
}

TEST(DeviceContents, many_neighbours_are_a_range_few_are_a_list) {
  std::vector<ModuleOp> ops;
  for (char name = 'a'; name <= 'i'; ++name) ops.push_back({std::string(1, name), 0});
  EXPECT_THAT(said(contents(ops)[0].modules), ElementsAre("a .. i"));
  ops[4].device = 1;
  ops.push_back({"j", 0});
  EXPECT_THAT(said(contents(ops)[0].modules), ElementsAre("a .. d", "f .. j"));
  ops.resize(3);
  EXPECT_THAT(said(contents(ops)[0].modules), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace emplace
