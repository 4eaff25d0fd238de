#include "run/device_subsets.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "sim/simulator.h"

#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const Graph> two_op_graph(Bytes persistent = 0) {
  TimedGraph graph;
  graph.add({.name = "a", .type = "compute", .persistent_bytes = persistent}, 10);
  graph.add({.name = "b", .type = "compute", .persistent_bytes = persistent}, 10);
  return graph.build();
}

std::vector<DeviceSet> subsets(const ClusterSpec& spec, DeviceId count,
                               std::vector<DeviceRule> rules = {}) {
  const auto problem = compile(two_op_graph(), std::make_shared<const Cluster>(spec),
                               CompileOptions{.rules = std::move(rules)});
  return device_subsets(*problem, count).sets;
}

TEST(DeviceSubsets, equal_devices_count_once) {
  EXPECT_THAT(subsets(gpu_cluster(8), 3), ElementsAre(DeviceSet{0, 1, 2}));
}

TEST(DeviceSubsets, all_devices_are_one_set) {
  EXPECT_THAT(subsets(gpu_cluster(3), 3), ElementsAre(DeviceSet{0, 1, 2}));
  EXPECT_THAT(subsets(gpu_cluster(3), 9), ElementsAre(DeviceSet{0, 1, 2}));
}

TEST(DeviceSubsets, faster_devices_come_first) {
  ClusterSpec spec = gpu_cluster(4);
  spec.devices[0].slowdown = spec.devices[1].slowdown = Decimal{3, 0};
  EXPECT_THAT(subsets(spec, 2), ElementsAre(DeviceSet{2, 3}, DeviceSet{0, 2}, DeviceSet{0, 1}));
}

TEST(DeviceSubsets, memory_and_gaps_make_a_difference) {
  ClusterSpec spec = gpu_cluster(3, 1000);
  spec.devices[1].memory = 2000;
  spec.devices[2].gap = 7;
  EXPECT_EQ(subsets(spec, 1).size(), 3);
}

// Two pairs with fast links inside.
ClusterSpec two_islands() {
  ClusterSpec spec = gpu_cluster(4);
  for (const auto& [from, to] : {std::pair(0, 1), {1, 0}, {2, 3}, {3, 2}}) {
    spec.links.push_back({.from = "gpu" + std::to_string(from),
                          .to = "gpu" + std::to_string(to),
                          .bandwidth = 100'000'000'000});
  }
  return spec;
}

TEST(DeviceSubsets, neighbours_and_strangers_differ_but_islands_do_not) {
  EXPECT_THAT(subsets(two_islands(), 2), ElementsAre(DeviceSet{0, 1}, DeviceSet{0, 2}));
  EXPECT_THAT(subsets(two_islands(), 3), ElementsAre(DeviceSet{0, 1, 2}, DeviceSet{0, 2, 3}))
      << "which of them comes first in the order of devices breaks ties";
}

TEST(DeviceSubsets, channels_make_a_difference) {
  ClusterSpec spec = gpu_cluster(4);
  spec.links.push_back({.from = "gpu0", .to = "*", .bandwidth = 1'000'000'000, .channel = "bus"});
  spec.links.push_back({.from = "gpu1", .to = "*", .bandwidth = 1'000'000'000, .channel = "bus"});
  EXPECT_THAT(subsets(spec, 2), ElementsAre(DeviceSet{0, 1}, DeviceSet{0, 2}))
      << "with one of the two each direction has a channel of its own";
}

TEST(DeviceSubsets, every_op_keeps_a_device) {
  const auto rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "a=gpu2"),
                      DeviceRule::parse(DeviceRule::Kind::kForbid, "b=gpu2")};
  EXPECT_THAT(subsets(gpu_cluster(4), 2, rules), ElementsAre(DeviceSet{0, 2}));
  try {
    subsets(gpu_cluster(4), 1, rules);
    FAIL() << "no single device may run both ops";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("op 'a' may use only gpu2"));
  }
}

TEST(DeviceSubsets, sets_that_are_too_small_are_left_out_unless_all_are) {
  ClusterSpec spec = gpu_cluster(3, 100);
  spec.devices[2].memory = 1000;
  spec.devices[2].slowdown = Decimal{2, 0};
  const auto problem = compile_timed(two_op_graph(200), spec);
  EXPECT_THAT(device_subsets(*problem, 1).sets, ElementsAre(DeviceSet{2}));
  const auto hopeless = compile_timed(two_op_graph(20'000), spec);
  EXPECT_EQ(device_subsets(*hopeless, 1).sets.size(), 2);
}

TEST(DeviceSubsets, of_many_the_fastest_the_largest_and_the_best_linked_are_kept) {
  ClusterSpec spec = gpu_cluster(12, 1000);
  for (int i = 0; i < 12; ++i) {
    spec.devices[i].slowdown = Decimal{10 + i, 0};
    spec.devices[i].memory = 1000 + (i == 11 ? 1000 : 0);
  }
  spec.links.push_back({.from = "gpu9", .to = "gpu10", .bandwidth = 1'000'000'000'000});
  const auto problem = compile_timed(two_op_graph(), spec);
  const DeviceSubsets few = device_subsets(*problem, 2, 5);
  EXPECT_FALSE(few.complete);
  ASSERT_LE(few.sets.size(), 5);
  EXPECT_EQ(few.sets.front(), (DeviceSet{0, 1}));
  const auto has = [&](const DeviceSet& set) {
    return std::find(few.sets.begin(), few.sets.end(), set) != few.sets.end();
  };
  EXPECT_TRUE(has({0, 11}));
  EXPECT_TRUE(has({9, 10}));
}

TEST(DeviceSubsets, grown_sets_keep_what_they_have) {
  ClusterSpec spec = gpu_cluster(4);
  spec.devices[0].slowdown = Decimal{3, 0};
  const auto problem = compile_timed(two_op_graph(), spec);
  EXPECT_EQ(grown_to(*problem, {0}, 3), (DeviceSet{0, 1, 2}));
  EXPECT_EQ(grown_to(*problem, {3}, 2), (DeviceSet{1, 3}));
}

TEST(SubsetProblem, placements_go_there_and_back) {
  EXPECT_EQ(to_whole({0, 1, 1}, {2, 5}), (Placement{2, 5, 5}));
  EXPECT_EQ(to_subset({2, 5, 5}, {2, 5}), (Placement{0, 1, 1}));
  EXPECT_EQ(to_subset({2, 4}, {2, 5}), std::nullopt);
}

TEST(SubsetProblem, rules_for_absent_devices_are_left_out) {
  const CompileOptions options{.rules = {DeviceRule::parse(DeviceRule::Kind::kForbid, "a=gpu0"),
                                         DeviceRule::parse(DeviceRule::Kind::kPin, "b=gpu0,gpu2")}};
  const auto whole =
      compile(two_op_graph(), std::make_shared<const Cluster>(gpu_cluster(3)), options);
  const auto problem = compile_on(whole, {1, 2});
  EXPECT_EQ(problem->allowed_devices(0).size(), 2);
  EXPECT_THAT(problem->allowed_devices(1), ElementsAre(1));
}

std::vector<DeviceSet> all_sets(DeviceId devices, DeviceId count) {
  std::vector<DeviceSet> sets;
  for (std::uint32_t bits = 0; bits < 1U << devices; ++bits) {
    DeviceSet set;
    for (DeviceId d = 0; d < devices; ++d) {
      if (bits >> d & 1U) set.push_back(d);
    }
    if (set.size() == count) sets.push_back(set);
  }
  return sets;
}

bool serves_all(const Problem& problem, const DeviceSet& set) {
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (std::none_of(set.begin(), set.end(),
                     [&](DeviceId device) { return problem.allowed(group, device); })) {
      return false;
    }
  }
  return true;
}

bool valid(const Problem& problem, const Placement& placement) {
  try {
    check_placement(problem, placement);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(SubsetProblem, placements_last_as_long_as_in_the_whole_problem) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const auto whole = random_problem(rng);
    const Placement placement = random_placement(*whole, rng);
    const Schedule schedule = random_schedule(*whole, rng);
    const DeviceSet used = used_devices(*whole, placement);
    const auto own = compile_on(whole, used);
    const Timeline expected = Simulator(whole).run(placement, schedule);
    const Timeline timeline = Simulator(own).run(*to_subset(placement, used), schedule);
    EXPECT_EQ(timeline.step, expected.step);
    for (std::size_t i = 0; i < used.size(); ++i) {
      EXPECT_EQ(timeline.devices[i].peak, expected.devices[used[i]].peak);
    }
  }
}

TEST(DeviceSubsets, a_placement_on_few_devices_has_its_like_on_one_of_the_sets) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const auto problem = random_problem(rng, {.max_ops = 10, .max_devices = 4});
    const Simulator simulator(problem);
    const auto workspace = simulator.make_workspace();
    for (DeviceId count = 1; count < problem->num_devices(); ++count) {
      DeviceSubsets few;
      try {
        few = device_subsets(*problem, count);
      } catch (const Error&) {
        continue;
      }
      if (!few.complete) continue;
      for (const DeviceSet& set : all_sets(problem->num_devices(), count)) {
        if (!serves_all(*problem, set)) continue;
        Placement placement(problem->num_ops());
        for (OpId op = 0; op < problem->num_ops(); ++op) {
          const OpId first = problem->group_ops(problem->group_of(op))[0];
          placement[op] = op == first ? set[rng.below(set.size())] : placement[first];
        }
        if (!valid(*problem, placement)) continue;
        const Evaluation value = simulator.evaluate(placement, {}, *workspace);
        if (!value.fits()) continue;
        ++checked;
        EXPECT_TRUE(std::any_of(few.sets.begin(), few.sets.end(), [&](const DeviceSet& other) {
          const Placement like = to_whole(*to_subset(placement, set), other);
          return valid(*problem, like) && simulator.evaluate(like, {}, *workspace) == value;
        }));
      }
    }
  }
  EXPECT_GT(checked, 300);
}

}  // namespace
}  // namespace emplace
