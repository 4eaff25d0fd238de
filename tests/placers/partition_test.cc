#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "placer/placer.h"

#include "placers/all.h"
#include "placers/common/coarse_graph.h"
#include "placers/common/scotch_map.h"

#include "support/random_problem.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string>& partitioners() {
  static const std::vector<std::string> keys{"metis", "metis(method=recursive)",
                                             "metis(memory=true)", "scotch", "mincut"};
  return keys;
}

ClusterSpec devices_of_kinds(const std::vector<std::string>& kinds, Bytes memory = kUnlimited) {
  ClusterSpec spec;
  spec.name = "test";
  for (const std::string& kind : std::set<std::string>(kinds.begin(), kinds.end())) {
    spec.kinds.push_back({.name = kind,
                          .peak_flops = {{"float32", 1e12}},
                          .memory_bandwidth = 1e11,
                          .memory = 1'000'000'000});
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Device device;
    device.name = fmt::format("d{}", i);
    device.kind = kinds[i];
    device.memory = memory;
    spec.devices.push_back(device);
  }
  LinkRule rule;
  rule.bandwidth = 1'000'000'000;
  spec.links = {rule};
  return spec;
}

// `count` clusters of `size` ops each: 1 MB between neighbours in one, 10 bytes from one to the
// next. An op takes 100 us on a "gpu" and 1000 us on a "cpu".
class Clumps {
 public:
  Clumps(int count, int size) : size_(size) {
    TensorId last = 0;
    for (int i = 0; i < count * size; ++i) {
      OpSpec spec;
      spec.name = fmt::format("op{}", i);
      spec.type = "compute";
      spec.time_us = {{"gpu", {100, 0}}, {"cpu", {1000, 0}}};
      if (i > 0) spec.inputs = {last};
      const bool bridge = (i + 1) % size == 0;
      specs_.push_back(spec);
      last = static_cast<TensorId>(i);
      bytes_.push_back(bridge ? 10 : 1'000'000);
    }
  }

  OpSpec& op(int i) { return specs_[static_cast<std::size_t>(i)]; }

  std::shared_ptr<const Problem> on(ClusterSpec cluster) const {
    GraphBuilder builder("clumps");
    for (std::size_t i = 0; i < specs_.size(); ++i) builder.add(specs_[i], {{.bytes = bytes_[i]}});
    return compile(std::make_shared<Graph>(std::move(builder).build()),
                   std::make_shared<Cluster>(Cluster(std::move(cluster))));
  }

  bool kept_whole(const Placement& placement) const {
    for (std::size_t i = 0; i < placement.size(); ++i) {
      if (placement[i] != placement[i - i % static_cast<std::size_t>(size_)]) return false;
    }
    return true;
  }

 private:
  int size_;
  std::vector<OpSpec> specs_;
  std::vector<Bytes> bytes_;
};

PlaceResult place_partitioned(const std::string& placer,
                              const std::shared_ptr<const Problem>& problem,
                              std::uint64_t seed = 1) {
  PlaceContext context(problem);
  PlaceResult result =
      all_placers().make(MethodSpec::parse(placer))->place(context, Budget(), Rng(seed));
  check_placement(*problem, result.placement);
  return result;
}

std::vector<int> ops_by_device(const PlaceResult& result, DeviceId devices) {
  std::vector<int> count(devices, 0);
  for (const DeviceId device : result.placement) ++count[device];
  return count;
}

TEST(CoarseGraph, adds_up_what_two_groups_exchange) {
  GraphBuilder builder("test");
  const auto op = [&](const std::string& name, std::vector<TensorId> inputs, Bytes bytes,
                      const std::string& colocate) {
    return builder.add({.name = name,
                        .type = "compute",
                        .inputs = std::move(inputs),
                        .time_us = {{"gpu", {10, 0}}},
                        .colocate = colocate},
                       {{.bytes = bytes}})[0];
  };
  const TensorId a = op("a", {}, 100, "left");
  const TensorId b = op("b", {a}, 20, "left");  // stays inside the group
  const TensorId c = op("c", {a, b}, 3, "right");
  op("d", {a}, 7, "right");  // a's tensor counts once for the group
  op("e", {c}, 9, "left");   // the other direction counts to the same edge
  const auto problem = compile(std::make_shared<Graph>(std::move(builder).build()),
                               std::make_shared<Cluster>(Cluster(devices_of_kinds({"gpu"}))));
  const CoarseGraph graph = build_coarse_graph(*problem);
  ASSERT_EQ(graph.size(), 2U);
  EXPECT_EQ(graph.offsets, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(graph.neighbours, (std::vector<GroupId>{1, 0}));
  EXPECT_EQ(graph.edge_bytes, (std::vector<Bytes>{123, 123}));
  EXPECT_EQ(graph.durations, (std::vector<Nanoseconds>{30'000, 20'000}));
}

TEST(CoarseGraph, scales_weights_into_their_limit) {
  EXPECT_EQ(scale_weights({3, 0, 5}, 100), (std::vector<std::int32_t>{3, 0, 5}));
  const std::vector<std::int64_t> large{1, 0, 4'000'000'000'000, 8'000'000'000'000};
  const auto scaled = scale_weights(large, 3000);
  EXPECT_EQ(scaled[0], 1);
  EXPECT_EQ(scaled[1], 0);
  EXPECT_NEAR(scaled[2], 1000, 5);
  EXPECT_NEAR(scaled[3], 2000, 5);
  EXPECT_LE(std::accumulate(scaled.begin(), scaled.end(), std::int64_t{0}), 3000);
}

TEST(Partitioner, places_every_tiny_case_validly) {
  for (const std::string& key : partitioners()) {
    for (const TinyCase& tiny : tiny_cases()) {
      SCOPED_TRACE(fmt::format("{} on {}", key, tiny.name));
      place_partitioned(key, tiny.problem);
    }
  }
}

TEST(Partitioner, places_random_problems_validly) {
  Rng rng(13);
  for (int i = 0; i < 200; ++i) {
    const auto problem = random_problem(rng);
    for (const std::string& key : partitioners()) {
      SCOPED_TRACE(fmt::format("{} on problem {}", key, i));
      place_partitioned(key, problem);
    }
  }
}

TEST(Partitioner, cuts_where_little_is_sent) {
  const Clumps clumps(4, 10);
  const auto problem = clumps.on(devices_of_kinds({"gpu", "gpu", "gpu", "gpu"}));
  for (const std::string& key : partitioners()) {
    const PlaceResult result = place_partitioned(key, problem);
    EXPECT_TRUE(clumps.kept_whole(result.placement)) << key;
    EXPECT_EQ(ops_by_device(result, 4), (std::vector<int>{10, 10, 10, 10})) << key;
    EXPECT_THAT(result.notes, IsEmpty()) << key;
  }
}

TEST(Partitioner, gives_the_same_result_for_the_same_seed) {
  Rng rng(17);
  for (int i = 0; i < 20; ++i) {
    const auto problem = random_problem(rng, {.max_ops = 200, .max_devices = 6});
    for (const std::string& key : partitioners()) {
      const Placement first = place_partitioned(key, problem, 5).placement;
      place_partitioned(key, problem, 6);
      EXPECT_EQ(place_partitioned(key, problem, 5).placement, first) << key << " on problem " << i;
    }
  }
}

// Libraries that use threads do so on graphs of some size only.
TEST(Partitioner, gives_the_same_result_for_the_same_seed_on_a_large_graph) {
  Rng rng(19);
  GraphBuilder builder("large");
  std::vector<TensorId> tensors;
  for (int i = 0; i < 5000; ++i) {
    OpSpec spec;
    spec.name = fmt::format("op{}", i);
    spec.type = "compute";
    spec.time_us = {{"gpu", {static_cast<std::int64_t>(1 + rng.below(50)), 0}}};
    for (std::uint64_t back = 1 + rng.below(5); back < 100 && i > 100; back += 1 + rng.below(90)) {
      spec.inputs.push_back(tensors[tensors.size() - back]);
    }
    const auto bytes = static_cast<Bytes>(1 + rng.below(1'000'000));
    tensors.push_back(builder.add(std::move(spec), {{.bytes = bytes}})[0]);
  }
  const auto problem =
      compile(std::make_shared<Graph>(std::move(builder).build()),
              std::make_shared<Cluster>(Cluster(devices_of_kinds({"gpu", "gpu", "gpu", "gpu"}))));
  for (const std::string& key : partitioners()) {
    const Placement first = place_partitioned(key, problem).placement;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(place_partitioned(key, problem).placement, first) << key;
  }
}

TEST(Partitioner, gives_slow_devices_less_work) {
  const Clumps clumps(1, 110);
  const auto problem = clumps.on(devices_of_kinds({"gpu", "cpu"}));
  for (const std::string key : {"metis", "scotch"}) {
    EXPECT_THAT(ops_by_device(place_partitioned(key, problem), 2),
                ::testing::ElementsAre(::testing::Ge(95),
                                       ::testing::AllOf(::testing::Ge(5), ::testing::Le(15))))
        << key;
  }
  EXPECT_EQ(ops_by_device(place_partitioned("mincut", problem), 2), (std::vector<int>{110, 0}));
}

TEST(Partitioner, moves_groups_to_devices_that_they_may_use) {
  Clumps clumps(2, 20);
  clumps.op(3).devices = {"cpu"};
  clumps.op(25).devices = {"d0"};
  const auto problem = clumps.on(devices_of_kinds({"gpu", "gpu", "cpu"}));
  for (const std::string& key : partitioners()) {
    const PlaceResult result = place_partitioned(key, problem);
    EXPECT_EQ(result.placement[3], 2) << key;
    EXPECT_EQ(result.placement[25], 0) << key;
    // One op that is tied to a device does not keep the others from the rest.
    EXPECT_GT(ops_by_device(result, 3)[1], 10) << key;
  }
}

TEST(Partitioner, says_that_the_result_does_not_fit) {
  const Clumps clumps(2, 10);
  const auto problem = clumps.on(devices_of_kinds({"gpu", "gpu"}, 1'500'000));
  for (const std::string& key : partitioners()) {
    const PlaceResult result = place_partitioned(key, problem);
    ASSERT_EQ(result.notes.size(), 1U) << key;
    EXPECT_THAT(result.notes[0], HasSubstr("does not fit in memory: d0 needs")) << key;
  }
}

TEST(Metis, balances_memory_where_asked) {
  // Two halves of equal time; all resident memory is in the first.
  Clumps clumps(2, 20);
  for (int i = 0; i < 20; ++i) clumps.op(i).persistent_bytes = 1'000'000;
  const auto problem = clumps.on(devices_of_kinds({"gpu", "gpu"}));
  const auto resident = [&](const PlaceResult& result) {
    std::vector<Bytes> sums(2, 0);
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      sums[result.placement[op]] += problem->resident_bytes(op);
    }
    return *std::max_element(sums.begin(), sums.end());
  };
  EXPECT_EQ(resident(place_partitioned("metis", problem)), 20'000'000);
  EXPECT_LE(resident(place_partitioned("metis(memory=true)", problem)), 13'000'000);
}

TEST(Metis, prints_nothing_about_ops_that_outweigh_a_part) {
  Clumps clumps(1, 12);
  clumps.op(4).time_us = {{"gpu", {1'000'000, 0}}};
  const auto problem = clumps.on(devices_of_kinds(std::vector<std::string>(8, "gpu")));
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  for (const std::string& key : partitioners()) place_partitioned(key, problem);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(ScotchMap, keeps_what_talks_much_on_devices_that_are_near) {
  // Four clumps on two pairs of near devices: the pairs of clumps that exchange more share a pair.
  CoarseGraph graph;
  graph.offsets = {0};
  const std::vector<std::vector<Bytes>> bytes{
      {0, 100, 1, 1}, {100, 0, 1, 1}, {1, 1, 0, 100}, {1, 1, 100, 0}};
  for (GroupId a = 0; a < 4; ++a) {
    for (GroupId b = 0; b < 4; ++b) {
      if (a == b) continue;
      graph.neighbours.push_back(b);
      graph.edge_bytes.push_back(bytes[a][b]);
    }
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbours.size()));
    graph.durations.push_back(1000);
    graph.resident.push_back(0);
  }
  // Devices 0 and 2 are near each other, and so are 1 and 3.
  ScotchTarget target{.shares = {0.25, 0.25, 0.25, 0.25}, .distances = {}};
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) target.distances.push_back(a == b ? 0 : a % 2 == b % 2 ? 1 : 20);
  }
  const auto parts = scotch_map(graph, target, 0.05, Rng(1));
  EXPECT_EQ(std::set<std::int32_t>(parts.begin(), parts.end()).size(), 4U);
  EXPECT_EQ(parts[0] % 2, parts[1] % 2);
  EXPECT_EQ(parts[2] % 2, parts[3] % 2);
}

}  // namespace
}  // namespace emplace
