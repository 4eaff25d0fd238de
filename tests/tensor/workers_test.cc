#include "tensor/workers.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/presets.h"
#include "graph/graph_builder.h"

#include "tensor/movement.h"
#include "tensor/topology.h"
#include "tensor/traffic.h"
#include "tensor/ways.h"

namespace emplace {
namespace {

using tdl::Interval;
using ::testing::ElementsAre;

TEST(Workers, factors_are_prime_and_the_largest_come_first) {
  EXPECT_THAT(prime_factors(1), ElementsAre());
  EXPECT_THAT(prime_factors(7), ElementsAre(7));
  EXPECT_THAT(prime_factors(12), ElementsAre(3, 2, 2));
}

TEST(Workers, parts_lie_side_by_side_and_cover_the_whole) {
  for (const auto& workers : {Workers({3, 2}), Workers({3, 2}, {1, 2, 3, 4, 5, 100})}) {
    for (const tdl::Position size : {6, 7, 64, 65}) {
      tdl::Position next = 0;
      for (Worker worker = 0; worker < workers.count(); ++worker) {
        const Interval part = workers.part(workers.part({0, size}, worker, 0), worker, 1);
        EXPECT_EQ(part.begin, next);
        next = part.end;
      }
      EXPECT_EQ(next, size);
    }
  }
}

TEST(Workers, shares_are_in_proportion) {
  const Workers workers({2}, {1, 3});
  EXPECT_EQ(workers.part({0, 100}, 0, 0), (Interval{0, 25}));
  EXPECT_EQ(workers.part({0, 2}, 0, 0), (Interval{0, 1}));  // nobody goes away with nothing
}

// Of eight elements a slow machine's four workers get two.
TEST(Workers, a_cut_that_leaves_somebody_without_is_none) {
  const Workers workers({2, 2, 2}, {1, 1, 1, 1, 3, 3, 3, 3});
  for (const Cuts& cuts : ways_to_cut({{{0, 8}}, {0}, workers}, true)) {
    for (Worker worker = 0; worker < workers.count(); ++worker) {
      EXPECT_FALSE(is_empty(part_of({{0, 8}}, cuts, workers, worker)));
    }
  }
  EXPECT_EQ(ways_to_cut({{{0, 64}}, {0}, workers}, false).size(), 1U);
}

// Two workers, a matrix: half of it for the other half (spec of two-worker costs).
TEST(Traffic, counts_what_two_workers_exchange) {
  const Workers workers({2});
  Traffic traffic(workers);
  const tdl::Region whole{{0, 8}, {0, 8}};
  const auto spread = [&](std::int8_t cut) { return spread_of(whole, {cut}, workers); };
  const auto parts = [&](std::int8_t cut) { return spread(cut).regions; };
  EXPECT_EQ(traffic.to_read(parts(0), spread(0), 1), 0);
  EXPECT_EQ(traffic.to_read(parts(1), spread(0), 1), 32);       // half of the matrix
  EXPECT_EQ(traffic.to_read(parts(kUncut), spread(0), 1), 64);  // all of it
  EXPECT_EQ(traffic.to_read(parts(0), spread(kUncut), 1), 0);
  Spread partial = spread(kUncut);
  partial.roles = {LevelRole::kPartial};
  const auto reduced = [&](std::int8_t cut) {
    return spread_of(whole, cuts_for_reduction(whole, {cut}, workers), workers);
  };
  EXPECT_EQ(traffic.to_keep(partial, reduced(0), spread(0), 1), 64);
  EXPECT_EQ(traffic.to_keep(partial, reduced(kUncut), spread(kUncut), 1), 128);
}

std::shared_ptr<const Problem> problem_on(ClusterSpec spec) {
  GraphBuilder builder("one");
  const TensorSpec tensor{.shape = {1 << 20}, .dtype = DType::kFloat32};
  const auto x = builder.add({.name = "x", .type = "input"}, {tensor});
  builder.add({.name = "y", .type = "Relu", .inputs = x}, {tensor});
  return compile(std::make_shared<const Graph>(std::move(builder).build()),
                 std::make_shared<const Cluster>(std::move(spec)));
}

// Two machines of three devices, listed in turn: the first level divides between the machines.
TEST(Topology, the_slowest_links_are_between_the_first_levels_groups) {
  ClusterSpec spec{.name = "two machines", .kinds = {}, .devices = {}, .links = {}};
  for (const char* name : {"a0", "b0", "a1", "b1", "a2", "b2"}) {
    spec.devices.push_back({.name = name, .kind = "v100", .memory = 1 << 30});
  }
  spec.links.push_back({.bandwidth = 1'000'000'000});
  for (const char machine : {'a', 'b'}) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        if (i == j) continue;
        spec.links.push_back({.from = std::string(1, machine) + std::to_string(i),
                              .to = std::string(1, machine) + std::to_string(j),
                              .bandwidth = 50'000'000'000});
      }
    }
  }
  const WorkerDevices on = workers_on(*problem_on(std::move(spec)));
  EXPECT_THAT(on.workers.factors(), ElementsAre(2, 3));
  EXPECT_THAT(on.devices, ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST(Topology, slower_devices_get_less_and_cpus_nothing) {
  ClusterSpec spec{.name = "unequal", .kinds = {}, .devices = {}, .links = {}};
  spec.devices.push_back({.name = "fast", .kind = "v100", .memory = 1 << 30});
  spec.devices.push_back({.name = "host", .kind = "cpu", .memory = 1 << 30});
  spec.devices.push_back(
      {.name = "slow", .kind = "v100", .memory = 1 << 30, .slowdown = Decimal{3, 0}});
  spec.links.push_back({.bandwidth = 1'000'000'000});
  const auto problem = problem_on(std::move(spec));
  const WorkerDevices on = workers_on(*problem);
  EXPECT_THAT(on.devices, ElementsAre(0, 2));
  EXPECT_EQ(on.workers.part({0, 100}, 0, 0), (Interval{0, 75}));
  EXPECT_THROW(workers_on(*problem, 3), Error);
}

std::vector<std::string> names_of(const ClusterSpec& spec, int count) {
  const auto problem = problem_on(spec);
  std::vector<std::string> names;
  for (const DeviceId device : workers_on(*problem, count).devices) {
    names.push_back(problem->cluster().device(device).name);
  }
  return names;
}

ClusterSpec devices_of_kinds(const std::vector<std::pair<std::string, std::string>>& devices) {
  ClusterSpec spec{.name = "kinds", .kinds = {}, .devices = {}, .links = {}};
  for (const auto& [name, kind] : devices) {
    spec.devices.push_back({.name = name, .kind = kind, .memory = 1 << 30});
  }
  spec.links.push_back({.bandwidth = 1'000'000'000});
  return spec;
}

TEST(Topology, some_are_the_fastest_in_whatever_order_devices_are_listed) {
  const auto first = devices_of_kinds({{"a", "a100"}, {"b", "a100"}, {"c", "k80"}, {"d", "k80"}});
  const auto last = devices_of_kinds({{"c", "k80"}, {"d", "k80"}, {"a", "a100"}, {"b", "a100"}});
  EXPECT_THAT(names_of(first, 2), ElementsAre("a", "b"));
  EXPECT_THAT(names_of(last, 2), ElementsAre("a", "b"));
  EXPECT_THAT(names_of(last, 3), ElementsAre("c", "a", "b"));
}

// Three machines, whose devices are listed in turn.
TEST(Topology, some_of_equal_devices_are_near_each_other) {
  ClusterSpec spec = devices_of_kinds({{"x0", "k80"},
                                       {"y0", "k80"},
                                       {"z0", "k80"},
                                       {"x1", "k80"},
                                       {"y1", "k80"},
                                       {"z1", "k80"},
                                       {"z2", "k80"}});
  for (const char* machine : {"x", "y", "z"}) {
    const std::string all = std::string(machine) + "*";
    spec.links.push_back({.from = all, .to = all, .bandwidth = 50'000'000'000});
  }
  EXPECT_THAT(names_of(spec, 2), ElementsAre("x0", "x1"));
  EXPECT_THAT(names_of(spec, 3), ElementsAre("z0", "z1", "z2"));
  EXPECT_THAT(names_of(spec, 5), ::testing::UnorderedElementsAre("z0", "z1", "z2", "x0", "x1"));
  // Beside a faster one, what is on its machine.
  spec.devices[4].kind = "a100";
  EXPECT_THAT(names_of(spec, 2), ElementsAre("y0", "y1"));
}

TEST(Topology, levels_between_machines_have_slower_links) {
  const auto between = [](const std::string& cluster) {
    const auto problem = problem_on(preset_cluster(cluster));
    return levels_between_machines(problem->cluster(), workers_on(*problem));
  };
  EXPECT_EQ(between("4xa100-nvlink"), 0U);
  EXPECT_EQ(between("4x(2xa100-nvlink)@3GB/s"), 2U);
}

// Two machines of four, of which two and two are joined.
TEST(Topology, pairs_inside_are_no_machines) {
  ClusterSpec spec = devices_of_kinds({{"a00", "k80"},
                                       {"a01", "k80"},
                                       {"a10", "k80"},
                                       {"a11", "k80"},
                                       {"b00", "k80"},
                                       {"b01", "k80"},
                                       {"b10", "k80"},
                                       {"b11", "k80"}});
  const auto join = [&](const std::string& all, std::int64_t bandwidth) {
    spec.links.push_back({.from = all, .to = all, .bandwidth = bandwidth});
  };
  for (const char* machine : {"a*", "b*"}) join(machine, 10'000'000'000);
  for (const char* pair : {"a0*", "a1*", "b0*", "b1*"}) join(pair, 50'000'000'000);
  const auto problem = problem_on(std::move(spec));
  const WorkerDevices on = workers_on(*problem);
  ASSERT_THAT(on.workers.factors(), ElementsAre(2, 2, 2));
  EXPECT_EQ(levels_between_machines(problem->cluster(), on), 1U);
  EXPECT_EQ(levels_of_slower_links(problem->cluster(), on), 2U);
}

// x and y of 4 MB each lie there together.
TEST(Topology, nobody_gets_more_than_its_memory_holds) {
  constexpr Bytes kStep = 2 * 4'000'000;
  const auto share_with = [&](std::vector<Bytes> memory) {
    ClusterSpec spec{.name = "unequal", .kinds = {}, .devices = {}, .links = {}};
    for (std::size_t i = 0; i < memory.size(); ++i) {
      spec.devices.push_back(
          {.name = "gpu" + std::to_string(i), .kind = "v100", .memory = memory[i]});
    }
    spec.links.push_back({.bandwidth = 1'000'000'000});
    GraphBuilder builder("wide");
    const TensorSpec wide{.shape = {1000, 1000}, .dtype = DType::kFloat32};
    const auto x = builder.add({.name = "x", .type = "input"}, {wide});
    builder.add({.name = "y", .type = "Relu", .inputs = x}, {wide});
    const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()),
                                 std::make_shared<const Cluster>(std::move(spec)));
    return workers_on(*problem).workers.part({0, 1000}, 0, 0).size();
  };
  EXPECT_EQ(share_with({kStep, kStep}), 500);
  EXPECT_EQ(share_with({kStep, kStep / 2}), 550);      // 0.9 of a half for the other
  EXPECT_EQ(share_with({2 * kStep, kStep / 9}), 900);  // 0.1 of it
  EXPECT_EQ(share_with({kStep / 2, kStep / 4}), 667);  // too little in all: by memory
}

TEST(Topology, a_cpu_of_any_size_is_no_worker_beside_accelerators) {
  EXPECT_THAT(workers_on(*problem_on(preset_cluster("2xv100+cpu16"))).devices, ElementsAre(0, 1));
  EXPECT_THAT(workers_on(*problem_on(preset_cluster("2xcpu16"))).devices, ElementsAre(0, 1));
}

}  // namespace
}  // namespace emplace
