#include "placers/local/clusters.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "placers/local/neighbourhood.h"

#include "support/random_problem.h"

namespace emplace {
namespace {

// A chain of equal groups, each exchanging as much with the next.
CoarseGraph chain(GroupId size) {
  CoarseGraph graph;
  graph.durations.assign(size, 10);
  graph.resident.assign(size, 0);
  graph.offsets.push_back(0);
  for (GroupId group = 0; group < size; ++group) {
    if (group > 0) graph.neighbours.push_back(group - 1);
    if (group + 1 < size) graph.neighbours.push_back(group + 1);
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbours.size()));
  }
  graph.edge_bytes.assign(graph.neighbours.size(), 1000);
  return graph;
}

TEST(Clusters, hold_every_group_once_and_stay_within_parts) {
  const CoarseGraph graph = chain(300);
  std::vector<std::uint32_t> parts(300);
  for (std::uint32_t i = 0; i < 300; ++i) parts[i] = i / 70;
  Rng rng(3);
  const Clusters clusters = cluster_groups(graph, parts, 20, rng);
  std::set<GroupId> seen;
  for (std::uint32_t cluster = 0; cluster < clusters.size(); ++cluster) {
    ASSERT_FALSE(clusters.groups[cluster].empty());
    for (const GroupId group : clusters.groups[cluster]) {
      EXPECT_TRUE(seen.insert(group).second);
      EXPECT_EQ(clusters.of_group[group], cluster);
      EXPECT_EQ(parts[group], parts[clusters.groups[cluster][0]]);
    }
  }
  EXPECT_EQ(seen.size(), 300U);
}

TEST(Clusters, are_about_as_many_as_wanted_and_about_as_heavy) {
  const CoarseGraph graph = chain(2000);
  const std::vector<std::uint32_t> parts(2000, 0);
  for (const std::uint32_t wanted : {10U, 50U, 400U}) {
    Rng rng(wanted);
    const Clusters clusters = cluster_groups(graph, parts, wanted, rng);
    EXPECT_GE(clusters.size(), wanted / 2);
    EXPECT_LE(clusters.size(), 2 * wanted);
    for (std::uint32_t cluster = 0; cluster < clusters.size(); ++cluster) {
      EXPECT_LE(clusters.groups[cluster].size(), 2 * 2000 / wanted);
    }
  }
}

TEST(Clusters, of_a_chain_are_pieces_of_it) {
  const CoarseGraph graph = chain(500);
  Rng rng(1);
  const Clusters clusters = cluster_groups(graph, std::vector<std::uint32_t>(500, 0), 25, rng);
  for (std::uint32_t cluster = 0; cluster < clusters.size(); ++cluster) {
    const auto groups = clusters.groups[cluster];
    EXPECT_EQ(groups.back() - groups.front() + 1, groups.size()) << "cluster " << cluster;
  }
}

TEST(Clusters, are_single_groups_where_more_are_wanted_than_there_are) {
  Rng rng(1);
  const Clusters clusters = cluster_groups(chain(5), std::vector<std::uint32_t>(5, 0), 9, rng);
  EXPECT_EQ(clusters.size(), 5U);
}

TEST(Neighbourhood, proposes_only_moves_that_leave_the_placement_valid) {
  int proposed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng);
    const CoarseGraph graph = build_coarse_graph(*problem);
    Neighbourhood neighbourhood(*problem, graph);
    Placement placement = random_placement(*problem, rng);
    neighbourhood.set_clusters(cluster_groups(graph, devices_of_groups(*problem, placement),
                                              static_cast<std::uint32_t>(1 + seed % 12), rng));
    const Simulator simulator(problem);
    neighbourhood.set_focus(simulator.hot_spots(placement, {}, *simulator.make_workspace()),
                            std::vector<Bytes>(problem->num_devices(), 0));
    std::vector<Move> moves;
    for (int i = 0; i < 60; ++i) {
      const auto kind = static_cast<Neighbourhood::Kind>(i % Neighbourhood::kNumKinds);
      if (!neighbourhood.propose(kind, placement, rng, moves)) continue;
      ++proposed;
      ASSERT_FALSE(moves.empty());
      Placement after = placement;
      for (const Move& move : moves) {
        for (const OpId op : problem->group_ops(move.group)) after[op] = move.device;
      }
      EXPECT_NE(after, placement) << "a move that changes nothing";
      ASSERT_NO_THROW(check_placement(*problem, after)) << describe(*problem, placement, {});
    }
  }
  EXPECT_GT(proposed, 3000);
}

}  // namespace
}  // namespace emplace
