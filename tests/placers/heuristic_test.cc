// What each of the baseline and Mayer placers promises beyond the conformance tests.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "placer/placer.h"

#include "placers/all.h"

#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PlaceResult place_checked(const std::string& spec, const std::shared_ptr<const Problem>& problem,
                          std::uint64_t seed = 1) {
  PlaceContext context(problem);
  const auto placer = all_placers().make(MethodSpec::parse(spec));
  PlaceResult result = placer->place(context, Budget{}, Rng(seed));
  check_placement(*problem, result.placement);
  return result;
}

// `count` ops that depend on nothing and hold `bytes` each.
std::shared_ptr<const Graph> independent(int count, Bytes bytes = 0) {
  TimedGraph graph;
  for (int i = 0; i < count; ++i) {
    graph.add({.name = "op" + std::to_string(i), .type = "compute", .persistent_bytes = bytes}, 10,
              0);
  }
  return graph.build();
}

std::shared_ptr<const Graph> chain(int count, Bytes tensor) {
  TimedGraph graph;
  TensorId last = graph.op("op0", 10, {}, tensor);
  for (int i = 1; i < count; ++i) last = graph.op("op" + std::to_string(i), 10, {last}, tensor);
  return graph.build();
}

// gpu1 is the fastest of three.
ClusterSpec unequal_cluster(Bytes memory = kUnlimited) {
  ClusterSpec spec = gpu_cluster(3, memory);
  spec.devices[0].slowdown = {2, 0};
  spec.devices[2].slowdown = {4, 0};
  return spec;
}

TEST(Single, takes_the_fastest_device) {
  EXPECT_THAT(place_checked("single", compile_timed(independent(3), unequal_cluster())).placement,
              ElementsAre(1, 1, 1));
}

TEST(Single, takes_a_slower_device_where_only_that_has_room) {
  ClusterSpec spec = unequal_cluster(100);
  spec.devices[2].memory = 1000;
  const PlaceResult result = place_checked("single", compile_timed(independent(3, 50), spec));
  EXPECT_THAT(result.placement, ElementsAre(2, 2, 2));
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(Single, says_so_when_it_fits_nowhere) {
  const PlaceResult result =
      place_checked("single", compile_timed(independent(3, 50), unequal_cluster(100)));
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("gpu1 needs 150 B of its 100 B")));
}

TEST(Single, sends_restricted_ops_to_their_fastest_device) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {});
  graph.add({.name = "b", .type = "compute", .inputs = {a}, .devices = {"gpu0", "gpu2"}}, 10);
  EXPECT_THAT(place_checked("single", compile_timed(graph.build(), unequal_cluster())).placement,
              ElementsAre(1, 0));
}

TEST(Single, obeys_the_device_option_and_refuses_an_unknown_device) {
  const auto problem = compile_timed(independent(2), unequal_cluster());
  EXPECT_THAT(place_checked("single(device=2)", problem).placement, ElementsAre(2, 2));
  EXPECT_THROW(place_checked("single(device=3)", problem), Error);
}

TEST(RoundRobin, deals_groups_in_turn_with_a_stride) {
  const auto problem = compile_timed(independent(7), gpu_cluster(3));
  EXPECT_THAT(place_checked("round_robin", problem).placement, ElementsAre(0, 1, 2, 0, 1, 2, 0));
  EXPECT_THAT(place_checked("round_robin(stride=2)", problem).placement,
              ElementsAre(0, 0, 1, 1, 2, 2, 0));
}

TEST(RoundRobin, passes_over_devices_that_are_not_allowed) {
  TimedGraph graph;
  graph.add({.name = "a", .type = "compute", .devices = {"gpu2"}}, 1);
  graph.add({.name = "b", .type = "compute", .devices = {"gpu0", "gpu2"}}, 1);
  graph.add({.name = "c", .type = "compute", .devices = {"gpu0", "gpu1"}}, 1);
  EXPECT_THAT(place_checked("round_robin", compile_timed(graph.build(), gpu_cluster(3))).placement,
              ElementsAre(2, 2, 0));
}

TEST(Random, uses_every_allowed_device_about_equally_and_no_other) {
  TimedGraph graph;
  for (int i = 0; i < 3000; ++i) {
    graph.add({.name = "op" + std::to_string(i), .type = "compute", .devices = {"gpu0", "gpu2"}}, 1,
              0);
  }
  const Placement placement =
      place_checked("random", compile_timed(graph.build(), gpu_cluster(3))).placement;
  const auto on_first = std::count(placement.begin(), placement.end(), 0);
  EXPECT_EQ(std::count(placement.begin(), placement.end(), 1), 0);
  EXPECT_NEAR(static_cast<double>(on_first), 1500, 150);
}

TEST(Random, differs_by_seed_and_says_when_memory_is_short) {
  const auto problem = compile_timed(independent(40, 10), gpu_cluster(2, 100));
  EXPECT_NE(place_checked("random", problem, 1).placement,
            place_checked("random", problem, 2).placement);
  EXPECT_THAT(place_checked("random", problem).notes, Contains(HasSubstr("does not fit")));
}

TEST(Hash, respects_memory_where_random_does_not) {
  const auto problem = compile_timed(independent(40, 10), gpu_cluster(4, 100));
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const PlaceResult result = place_checked("hash", problem, seed);
    EXPECT_THAT(result.notes, IsEmpty());
    for (DeviceId device = 0; device < 4; ++device) {
      EXPECT_EQ(std::count(result.placement.begin(), result.placement.end(), device), 10);
    }
  }
}

TEST(BatchSplit, puts_the_highest_ranks_on_the_fastest_device_in_batches_by_speed) {
  // Speeds 1/2, 1 and 1/4, so that seven ops split 2 : 4 : 1.
  const auto problem = compile_timed(chain(7, 0), unequal_cluster());
  EXPECT_THAT(place_checked("batch_split(rank=upward)", problem).placement,
              ElementsAre(1, 1, 1, 1, 0, 0, 2));
}

TEST(BatchSplit, keeps_the_longest_path_together_when_ranks_are_total) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 40, {}, 0);
  const TensorId side = graph.op("side", 5, {a}, 0);
  const TensorId b = graph.op("b", 40, {a}, 0);
  graph.op("c", 10, {side, b}, 0);
  // Batches of half the 95 us: {a, b} reach it first.
  const Placement placement =
      place_checked("batch_split", compile_timed(graph.build(), gpu_cluster(2))).placement;
  EXPECT_EQ(placement[0], placement[2]);
  EXPECT_NE(placement[0], placement[1]);
}

// A heavy chain and a light one that joins it.
std::shared_ptr<const Graph> heavy_and_light(Bytes held) {
  TimedGraph graph;
  const auto holder = [&](const std::string& name, std::vector<TensorId> inputs, std::int64_t us) {
    return graph.add(
        {.name = name, .type = "compute", .inputs = std::move(inputs), .persistent_bytes = held},
        us, 0);
  };
  const TensorId heavy0 = holder("heavy0", {}, 50);
  const TensorId light0 = holder("light0", {}, 10);
  const TensorId heavy1 = holder("heavy1", {heavy0}, 50);
  const TensorId light1 = holder("light1", {light0}, 10);
  holder("join", {heavy1, light1}, 50);
  return graph.build();
}

TEST(CriticalPath, keeps_the_critical_path_on_the_fastest_device) {
  const auto problem = compile_timed(heavy_and_light(0), unequal_cluster());
  EXPECT_THAT(place_checked("critical_path", problem).placement, ElementsAre(1, 0, 1, 0, 1));
}

TEST(CriticalPath, spills_to_the_next_fastest_when_full) {
  const auto problem = compile_timed(heavy_and_light(40), unequal_cluster(90));
  const PlaceResult result = place_checked("critical_path", problem);
  EXPECT_EQ(result.placement[0], 1);
  EXPECT_EQ(result.placement[2], 1);
  EXPECT_EQ(result.placement[4], 0);
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(CriticalPath, hashes_the_rest_when_told_to) {
  const auto problem = compile_timed(heavy_and_light(0), unequal_cluster());
  std::set<DeviceId> seen;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Placement placement = place_checked("critical_path(rest=hash)", problem, seed).placement;
    EXPECT_EQ(placement[0], 1);
    seen.insert(placement[1]);
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(Dfs, follows_tensors_rather_than_sending_them) {
  const auto problem = compile_timed(chain(6, 1'000'000), gpu_cluster(3));
  EXPECT_THAT(place_checked("dfs", problem).placement, Each(0));
}

TEST(Dfs, goes_elsewhere_when_execution_gains_more_than_traffic_costs) {
  // gpu0 is a hundred times slower than gpu1, a transfer takes 1 us.
  TimedGraph graph;
  const TensorId pinned =
      graph.add({.name = "pinned", .type = "compute", .devices = {"gpu0"}}, 10, 1000);
  graph.op("next", 10, {pinned});
  ClusterSpec spec = gpu_cluster(2);
  spec.devices[0].slowdown = {100, 0};
  EXPECT_THAT(place_checked("dfs", compile_timed(graph.build(), spec)).placement,
              ElementsAre(0, 1));
}

TEST(Dfs, moves_on_when_memory_is_full) {
  TimedGraph graph;
  TensorId last = graph.add({.name = "op0", .type = "compute", .persistent_bytes = 40}, 10, 10);
  for (int i = 1; i < 4; ++i) {
    last = graph.add({.name = "op" + std::to_string(i),
                      .type = "compute",
                      .inputs = {last},
                      .persistent_bytes = 40},
                     10, 10);
  }
  const PlaceResult result =
      place_checked("dfs", compile_timed(graph.build(), gpu_cluster(2, 120)));
  EXPECT_THAT(result.placement, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(Mite, spreads_independent_work_by_memory) {
  const auto problem = compile_timed(independent(8, 10), gpu_cluster(4, 1000));
  const Placement placement = place_checked("mite", problem).placement;
  for (DeviceId device = 0; device < 4; ++device) {
    EXPECT_EQ(std::count(placement.begin(), placement.end(), device), 2);
  }
}

TEST(Mite, keeps_a_chain_together_when_tensors_are_heavy) {
  const auto problem = compile_timed(chain(6, 100'000'000), gpu_cluster(3, 10'000'000'000));
  EXPECT_THAT(place_checked("mite", problem).placement, Each(0));
}

TEST(Mite, prefers_the_fast_device_for_what_comes_first) {
  const auto problem = compile_timed(independent(1), unequal_cluster());
  EXPECT_THAT(place_checked("mite", problem).placement, ElementsAre(1));
}

// gpu0 and gpu2 are each linked with gpu1, but not with each other.
ClusterSpec line_of_three() {
  ClusterSpec spec = gpu_cluster(3);
  const LinkRule link = spec.links[0];
  spec.links.clear();
  for (const auto& [from, to] :
       {std::pair{"gpu0", "gpu1"}, {"gpu1", "gpu0"}, {"gpu1", "gpu2"}, {"gpu2", "gpu1"}}) {
    spec.links.push_back(link);
    spec.links.back().from = from;
    spec.links.back().to = to;
  }
  return spec;
}

TEST(HeuristicPlacers, use_linked_devices_only) {
  TimedGraph graph;
  std::vector<TensorId> made;
  for (int i = 0; i < 30; ++i) {
    std::vector<TensorId> inputs;
    if (i > 0) inputs.push_back(made[static_cast<std::size_t>(i * 7 % i)]);
    if (i > 3) inputs.push_back(made[static_cast<std::size_t>(i - 3)]);
    made.push_back(graph.op("op" + std::to_string(i), 10, inputs));
  }
  const auto problem = compile_timed(graph.build(), line_of_three());
  for (const char* key : {"single", "random", "round_robin", "hash", "expert", "batch_split",
                          "critical_path", "mite", "dfs"}) {
    EXPECT_NO_THROW(place_checked(key, problem)) << key;  // `place_checked` checks the links
  }
}

TEST(HeuristicPlacers, go_round_a_missing_link_where_they_look_at_traffic) {
  TimedGraph graph;
  const TensorId a = graph.add({.name = "a", .type = "compute", .devices = {"gpu0"}}, 1);
  const TensorId b = graph.op("b", 1, {a});
  graph.add({.name = "c", .type = "compute", .inputs = {b}, .devices = {"gpu2"}}, 1);
  const auto problem = compile_timed(graph.build(), line_of_three());
  EXPECT_THAT(place_checked("dfs", problem).placement, ElementsAre(0, 1, 2));
  EXPECT_THAT(place_checked("mite", problem).placement, ElementsAre(0, 1, 2));
  // No set of mutually linked devices holds both ends.
  EXPECT_THROW(place_checked("hash", problem), Error);
}

TEST(HeuristicPlacers, are_valid_and_repeatable_on_random_problems) {
  Rng rng(23);
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    const auto problem = random_problem(rng);
    for (const char* key : {"single", "random", "round_robin", "hash", "expert", "batch_split",
                            "critical_path", "mite", "dfs"}) {
      try {
        EXPECT_EQ(place_checked(key, problem, 4).placement,
                  place_checked(key, problem, 4).placement)
            << key;
      } catch (const Error& error) {
        // Only where links are missing between the devices that ops are restricted to.
        EXPECT_THAT(error.what(), HasSubstr("link")) << key;
        ++refused;
      }
    }
  }
  EXPECT_LT(refused, 60 * 9 / 4);
}

}  // namespace
}  // namespace emplace
