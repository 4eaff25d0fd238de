#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "placer/linked_devices.h"
#include "placer/placer.h"

#include "placers/all.h"
#include "placers/common/favourite_children.h"
#include "placers/common/gap_timeline.h"
#include "placers/common/list_schedule.h"
#include "placers/common/task_graph.h"

#include "support/random_problem.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Nanoseconds kMicrosecond = 1000;

// Ops whose time is in microseconds on every "fast" device.
class Builder {
 public:
  TensorId op(const std::string& name, std::int64_t time_us, std::vector<TensorId> inputs,
              Bytes bytes = 1000, OpSpec extra = {}) {
    extra.name = name;
    if (extra.type.empty()) extra.type = "compute";
    extra.inputs = std::move(inputs);
    if (role_of_type(extra.type) == OpRole::kCompute) extra.time_us = {{"fast", {time_us, 0}}};
    return builder_.add(std::move(extra), {{.bytes = bytes}})[0];
  }

  std::shared_ptr<const Problem> on(const Cluster& cluster) {
    return compile(std::make_shared<Graph>(std::move(builder_).build()),
                   std::make_shared<Cluster>(cluster));
  }

 private:
  GraphBuilder builder_{"test"};
};

ClusterSpec fast_devices(int count, std::int64_t bandwidth, Bytes memory = 1'000'000'000) {
  ClusterSpec spec;
  spec.name = "test";
  spec.kinds = {{.name = "fast",
                 .peak_flops = {{"float32", 1e12}},
                 .memory_bandwidth = 1e11,
                 .memory = memory}};
  for (int i = 0; i < count; ++i) {
    Device device;
    device.name = fmt::format("d{}", i);
    device.kind = "fast";
    device.memory = memory;
    spec.devices.push_back(device);
  }
  LinkRule rule;
  rule.bandwidth = bandwidth;
  spec.links = {rule};
  return spec;
}

PlaceResult place_listed(const std::string& placer, const std::shared_ptr<const Problem>& problem) {
  PlaceContext context(problem);
  PlaceResult result =
      all_placers().make(MethodSpec::parse(placer))->place(context, Budget(), Rng(1));
  check_placement(*problem, result.placement);
  return result;
}

Nanoseconds step(const std::shared_ptr<const Problem>& problem, const PlaceResult& result) {
  return Evaluator(problem).evaluate(result.placement, result.schedule).step;
}

std::size_t devices_used(const PlaceResult& result) {
  return std::set<DeviceId>(result.placement.begin(), result.placement.end()).size();
}

std::shared_ptr<const Problem> two_chains_of(int length, const Cluster& cluster) {
  Builder builder;
  TensorId a = builder.op("a0", 100, {});
  TensorId b = builder.op("b0", 100, {});
  for (int i = 1; i < length; ++i) {
    a = builder.op(fmt::format("a{}", i), 100, {a});
    b = builder.op(fmt::format("b{}", i), 100, {b});
  }
  return builder.on(cluster);
}

const std::vector<std::string>& list_schedulers() {
  static const std::vector<std::string> keys{"heft", "m_topo", "m_etf", "m_sct"};
  return keys;
}

// ---- free time

TEST(GapTimeline, finds_the_first_gap_that_is_long_enough) {
  GapTimeline timeline;
  timeline.reserve(10, 5);
  timeline.reserve(20, 10);
  EXPECT_EQ(timeline.find(0, 10), 0);
  EXPECT_EQ(timeline.find(0, 11), 30);
  EXPECT_EQ(timeline.find(3, 5), 3);
  EXPECT_EQ(timeline.find(6, 5), 15);
  EXPECT_EQ(timeline.find(0, 5, false), 30);
  EXPECT_EQ(timeline.find(40, 5, false), 40);
}

TEST(GapTimeline, agrees_with_a_scan_over_every_unit_of_time) {
  Rng rng(7);
  constexpr Nanoseconds kEnd = 400;
  GapTimeline timeline;
  std::vector<bool> taken(2 * kEnd, false);
  for (int i = 0; i < 300; ++i) {
    const auto ready = static_cast<Nanoseconds>(rng.below(kEnd));
    const auto length = static_cast<Nanoseconds>(1 + rng.below(4));
    Nanoseconds expected = ready;
    for (Nanoseconds at = ready; at < expected + length; ++at) {
      if (taken[static_cast<std::size_t>(at)]) expected = at + 1;
    }
    ASSERT_EQ(timeline.find(ready, length), expected) << "try " << i;
    if (expected + length >= kEnd) continue;
    timeline.reserve(expected, length);
    for (Nanoseconds at = expected; at < expected + length; ++at) {
      taken[static_cast<std::size_t>(at)] = true;
    }
  }
}

// ---- what all list schedulers share

TEST(ListScheduler, places_every_tiny_case_validly) {
  for (const std::string& key : list_schedulers()) {
    for (const TinyCase& tiny : tiny_cases()) {
      SCOPED_TRACE(fmt::format("{} on {}", key, tiny.name));
      place_listed(key, tiny.problem);
    }
  }
}

TEST(ListScheduler, places_random_problems_validly) {
  Rng rng(11);
  for (int i = 0; i < 300; ++i) {
    const auto problem = random_problem(rng);
    for (const std::string& key : list_schedulers()) {
      SCOPED_TRACE(fmt::format("{} on problem {}", key, i));
      place_listed(key, problem);
    }
  }
}

TEST(ListScheduler, runs_independent_chains_on_two_devices) {
  const auto problem = two_chains_of(5, Cluster(fast_devices(2, 1'000'000'000)));
  for (const std::string key : {"heft", "m_etf", "m_sct"}) {
    EXPECT_EQ(step(problem, place_listed(key, problem)), 500 * kMicrosecond) << key;
  }
}

TEST(ListScheduler, puts_parameters_where_they_are_read) {
  Builder builder;
  const OpSpec parameter{.name = {}, .type = "parameter"};
  const TensorId w0 = builder.op("w0", 0, {}, 1'000'000, parameter);
  const TensorId w1 = builder.op("w1", 0, {}, 1'000'000, parameter);
  builder.op("a", 100, {w0});
  builder.op("b", 100, {w1});
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000)));
  for (const std::string key : {"heft", "m_etf", "m_sct"}) {
    const PlaceResult result = place_listed(key, problem);
    EXPECT_EQ(result.placement[0], result.placement[2]) << key;
    EXPECT_EQ(result.placement[1], result.placement[3]) << key;
    EXPECT_EQ(devices_used(result), 2U) << key;
  }
}

// Devices in a line, each linked with the next alone.
Cluster line_of(int count) {
  ClusterSpec spec = fast_devices(count, 1'000'000'000);
  spec.links.clear();
  for (int i = 0; i + 1 < count; ++i) {
    LinkRule rule;
    rule.from = spec.devices[static_cast<std::size_t>(i)].name;
    rule.to = spec.devices[static_cast<std::size_t>(i + 1)].name;
    rule.bandwidth = 1'000'000'000;
    spec.links.push_back(rule);
    std::swap(rule.from, rule.to);
    spec.links.push_back(rule);
  }
  return Cluster(spec);
}

TEST(ListScheduler, puts_an_op_on_the_device_that_is_linked_with_both_its_producers) {
  Builder builder;
  OpSpec first;
  first.devices = {"d0"};
  OpSpec last;
  last.devices = {"d2"};
  const TensorId a = builder.op("a", 500, {}, 1000, first);
  const TensorId b = builder.op("b", 500, {}, 1000, last);
  builder.op("sum", 100, {a, b});
  const auto problem = builder.on(line_of(3));
  for (const std::string& key : list_schedulers()) {
    EXPECT_EQ(place_listed(key, problem).placement, (Placement{0, 2, 1})) << key;
  }
}

TEST(ListScheduler, leaves_devices_out_when_links_are_missing_for_an_op) {
  // Earliest times spread the first eight over all four devices, and then no device can read them
  // all.
  Builder builder;
  std::vector<TensorId> outputs;
  for (int i = 0; i < 8; ++i) outputs.push_back(builder.op(fmt::format("a{}", i), 500, {}));
  builder.op("sum", 100, outputs);
  const auto problem = builder.on(line_of(4));
  EXPECT_EQ(mutually_linked_devices(*problem), (std::vector<DeviceId>{0, 1}));
  for (const std::string key : {"heft", "m_etf", "m_sct"}) {
    const PlaceResult result = place_listed(key, problem);
    EXPECT_EQ(devices_used(result), 2U) << key;
    ASSERT_EQ(result.notes.size(), 1U) << key;
    EXPECT_THAT(result.notes[0], HasSubstr("d2, d3")) << key;
  }
}

TEST(ListScheduler, says_that_nothing_fits) {
  Builder builder;
  OpSpec heavy;
  heavy.persistent_bytes = 5000;
  builder.op("a", 100, {}, 10, heavy);
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000, 1000)));
  for (const std::string& key : list_schedulers()) {
    const PlaceResult result = place_listed(key, problem);
    ASSERT_EQ(result.notes.size(), 1U) << key;
    EXPECT_THAT(result.notes[0], HasSubstr("does not fit in memory")) << key;
  }
}

TEST(ListScheduler, splits_what_does_not_fit_on_one_device) {
  Builder builder;
  OpSpec heavy;
  heavy.persistent_bytes = 600;
  TensorId last = builder.op("a0", 10, {}, 10, heavy);
  for (int i = 1; i < 3; ++i) last = builder.op(fmt::format("a{}", i), 10, {last}, 10, heavy);
  const auto problem = builder.on(Cluster(fast_devices(3, 1'000'000'000, 1000)));
  for (const std::string& key : list_schedulers()) {
    const PlaceResult result = place_listed(key, problem);
    EXPECT_EQ(devices_used(result), 3U) << key;
    EXPECT_THAT(result.notes, IsEmpty()) << key;
  }
}

// ---- HEFT

TEST(Heft, keeps_chain_on_one_device_when_links_are_slow) {
  Builder builder;
  TensorId last = builder.op("a0", 100, {});
  for (int i = 1; i < 6; ++i) last = builder.op(fmt::format("a{}", i), 100, {last});
  const auto problem = builder.on(Cluster(fast_devices(3, 1'000'000)));
  EXPECT_EQ(devices_used(place_listed("heft", problem)), 1U);
}

TEST(Heft, knows_that_transfers_share_a_channel) {
  // Each of four readers of four tensors gains from leaving if its transfer is alone on the
  // channel, but not behind three others.
  Builder builder;
  std::vector<TensorId> made;
  for (int i = 0; i < 4; ++i) {
    OpSpec pinned;
    pinned.devices = {"d0"};
    made.push_back(builder.op(fmt::format("make{}", i), 1, {}, 150'000, pinned));
  }
  for (int i = 0; i < 4; ++i) {
    builder.op(fmt::format("read{}", i), 100, {made[static_cast<std::size_t>(i)]});
  }
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  const Nanoseconds with = step(problem, place_listed("heft", problem));
  const Nanoseconds without = step(problem, place_listed("heft(contention=false)", problem));
  EXPECT_EQ(with, 304 * kMicrosecond);
  EXPECT_LE(with, without);
}

TEST(Heft, inserts_an_op_into_a_gap_only_where_it_may) {
  // d0 waits 1000 us for b's result from d1 before it runs c; the independent e fits in that gap.
  Builder builder;
  OpSpec on_d0;
  on_d0.devices = {"d0"};
  OpSpec on_d1;
  on_d1.devices = {"d1"};
  const TensorId a = builder.op("a", 10, {}, 1000, on_d0);
  const TensorId b = builder.op("b", 1000, {a}, 1000, on_d1);
  builder.op("c", 500, {b}, 1000, on_d0);
  builder.op("e", 100, {}, 1000, on_d0);
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  const PlaceResult with = place_listed("heft", problem);
  const PlaceResult without = place_listed("heft(insertion=false)", problem);
  EXPECT_GT(with.schedule.priorities[3], with.schedule.priorities[2]);
  EXPECT_LT(without.schedule.priorities[3], without.schedule.priorities[2]);
}

TEST(Heft, counts_the_whole_group_when_it_chooses_a_device) {
  // The first op is as fast on both devices; the op that must share its device is slow on d0.
  GraphBuilder graph("test");
  graph.add({.name = "first",
             .type = "compute",
             .time_us = {{"d0", {10, 0}}, {"d1", {10, 0}}},
             .colocate = "together"},
            {{.bytes = 10}});
  graph.add({.name = "second",
             .type = "compute",
             .time_us = {{"d0", {900, 0}}, {"d1", {10, 0}}},
             .colocate = "together"},
            {{.bytes = 10}});
  const auto problem = compile(std::make_shared<Graph>(std::move(graph).build()),
                               std::make_shared<Cluster>(Cluster(fast_devices(2, 1'000'000'000))));
  EXPECT_THAT(place_listed("heft", problem).placement, ::testing::Each(DeviceId{1}));
}

// ---- m-TOPO

TEST(MTopo, fills_devices_one_after_another_up_to_a_balanced_cap) {
  Builder builder;
  OpSpec heavy;
  heavy.persistent_bytes = 100;
  TensorId last = builder.op("a0", 10, {}, 0, heavy);
  for (int i = 1; i < 9; ++i) last = builder.op(fmt::format("a{}", i), 10, {last}, 0, heavy);
  const auto problem = builder.on(Cluster(fast_devices(3, 1'000'000'000)));
  // The cap is 900 / 3 + 100.
  EXPECT_EQ(place_listed("m_topo", problem).placement, (Placement{0, 0, 0, 0, 1, 1, 1, 1, 2}));
}

// ---- m-ETF

TEST(MEtf, is_not_stalled_by_ops_that_take_no_time) {
  Builder builder;
  TensorId last = builder.op("a0", 100, {});
  for (int i = 1; i < 2000; ++i) last = builder.op(fmt::format("a{}", i), 0, {last});
  builder.op("end", 100, {last});
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  for (const std::string key : {"m_etf", "m_sct"}) {
    EXPECT_EQ(step(problem, place_listed(key, problem)), 200 * kMicrosecond) << key;
  }
}

TEST(MEtf, takes_equal_starts_in_the_order_of_ops_and_devices) {
  Builder builder;
  for (int i = 0; i < 4; ++i) builder.op(fmt::format("a{}", i), 100, {});
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  EXPECT_EQ(place_listed("m_etf", problem).placement, (Placement{0, 1, 0, 1}));
}

// ---- m-SCT

TEST(FavouriteChildren, favours_the_child_on_the_longest_path) {
  Builder builder;
  const TensorId a = builder.op("a", 100, {}, 50'000);
  builder.op("short", 10, {a});
  builder.op("long", 1000, {a});
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  const FavouriteResult result =
      find_favourite_children(*problem, floating_ops(*problem), FavouriteOptions{});
  EXPECT_TRUE(result.optimal);
  EXPECT_EQ(result.favourites.child[0], 2U);
  EXPECT_EQ(result.favourites.delay[0], 50 * kMicrosecond);
}

TEST(FavouriteChildren, are_those_that_cost_most_to_send_to_where_there_is_no_time) {
  Builder builder;
  const TensorId a = builder.op("a", 100, {}, 50'000);
  const TensorId b = builder.op("b", 100, {}, 90'000);
  builder.op("both", 10, {a, b});
  builder.op("own", 1000, {a});
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  const FavouriteResult result =
      find_favourite_children(*problem, floating_ops(*problem), FavouriteOptions{.seconds = 0});
  EXPECT_FALSE(result.solved);
  EXPECT_EQ(result.favourites.child[1], 2U);
  EXPECT_EQ(result.favourites.child[0], 3U) << "the other child is taken";
}

TEST(FavouriteChildren, has_at_most_one_parent_for_each_child) {
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    const auto problem = random_problem(rng);
    const FavouriteResult result = find_favourite_children(
        *problem, floating_ops(*problem),
        FavouriteOptions{.threshold = 0.5, .seconds = i % 2 == 0 ? 1e6 : 0});
    std::set<OpId> children;
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      const OpId child = result.favourites.child[op];
      if (child == kNoOp) continue;
      EXPECT_GT(child, op);
      EXPECT_TRUE(children.insert(child).second) << "problem " << i << ", op " << child;
    }
  }
}

TEST(TaskGraph, drops_an_edge_beside_a_path_that_takes_longer) {
  Builder builder;
  const TensorId a = builder.op("a", 100, {}, 50'000);  // 50 us to another device
  const TensorId b = builder.op("b", 60, {a});
  const TensorId c = builder.op("c", 10, {b});
  builder.op("d", 100, {a, c});
  builder.op("e", 100, {a});
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  TaskGraph graph = build_task_graph(*problem, floating_ops(*problem));
  ASSERT_EQ(graph.edges.size(), 5U);
  remove_implied_edges(graph);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> left;
  for (const TaskEdge& edge : graph.edges) left.emplace_back(edge.from, edge.to);
  EXPECT_THAT(left, ::testing::ElementsAre(std::pair{0U, 1U}, std::pair{0U, 4U}, std::pair{1U, 2U},
                                           std::pair{2U, 3U}));
  const TaskChains chains = find_chains(graph);
  EXPECT_EQ(chains.task, (std::vector<std::uint32_t>{0, 1, 1, 1, 2}));
  EXPECT_EQ(chains.duration[1], 170 * kMicrosecond);
}

TEST(MSct, keeps_the_device_for_the_favourite_child) {
  // When "a" ends, d0 can start "other" or "next". By index "other" is first, and then "next" must
  // wait for a's result on d1; but "next" is a's favourite child.
  Builder builder;
  OpSpec on_d0;
  on_d0.devices = {"d0"};
  OpSpec on_d1;
  on_d1.devices = {"d1"};
  const TensorId first = builder.op("first", 10, {}, 300'000, on_d0);
  const TensorId a = builder.op("a", 100, {}, 200'000, on_d0);
  const TensorId late = builder.op("late", 105, {}, 1000, on_d1);
  builder.op("other", 400, {first});
  builder.op("next", 1000, {a, late});
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  EXPECT_EQ(step(problem, place_listed("m_etf", problem)), 1310 * kMicrosecond);
  EXPECT_EQ(step(problem, place_listed("m_sct", problem)), 1110 * kMicrosecond);
}

TEST(MSct, says_that_the_linear_program_was_stopped) {
  Rng rng(3);
  Builder builder;
  std::vector<TensorId> tensors;
  for (int i = 0; i < 200; ++i) {
    std::set<TensorId> inputs;
    for (int j = 0; j < 3 && !tensors.empty(); ++j)
      inputs.insert(tensors[rng.below(tensors.size())]);
    const auto time = static_cast<std::int64_t>(10 + rng.below(90));
    tensors.push_back(builder.op(fmt::format("a{}", i), time, {inputs.begin(), inputs.end()},
                                 static_cast<Bytes>(1000 + rng.below(100'000))));
  }
  const auto problem = builder.on(Cluster(fast_devices(2, 1'000'000'000)));
  EXPECT_THAT(place_listed("m_sct", problem).notes, IsEmpty());
  EXPECT_THAT(place_listed("m_sct(iterations=1)", problem).notes,
              ::testing::ElementsAre(HasSubstr("stopped short of its optimum")));
}

}  // namespace
}  // namespace emplace
