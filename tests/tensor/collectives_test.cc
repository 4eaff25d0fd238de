// What goes over each channel when many reduce and gather: as little as hierarchical collectives
// send, in machines of every shape.
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "graph/graph_builder.h"

#include "tensor/evaluate.h"
#include "tensor/network.h"
#include "tensor/partition_problem.h"
#include "tensor/topology.h"
#include "tensor/traffic.h"

namespace emplace {
namespace {

// All that leaves a machine shares its way out, as does all that leaves a device within it.
std::shared_ptr<const Cluster> machines(const std::vector<int>& sizes, std::int64_t network,
                                        Nanoseconds latency = 0) {
  ClusterSpec spec{.name = "machines", .kinds = {}, .devices = {}, .links = {}};
  std::vector<std::vector<std::string>> names(sizes.size());
  for (std::size_t machine = 0; machine < sizes.size(); ++machine) {
    for (int i = 0; i < sizes[machine]; ++i) {
      names[machine].push_back(fmt::format("m{}.gpu{}", machine, i));
      spec.devices.push_back({.name = names[machine].back(), .kind = "v100", .memory = 1LL << 36});
    }
  }
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    for (std::size_t b = 0; b < sizes.size(); ++b) {
      for (const std::string& from : names[a]) {
        for (const std::string& to : names[b]) {
          if (from == to) continue;
          const bool within = a == b;
          spec.links.push_back({.from = from,
                                .to = to,
                                .bandwidth = within ? 100'000'000'000 : network,
                                .latency = latency,
                                .channel = within ? from + " out" : fmt::format("machine {}", a)});
        }
      }
    }
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

// x [m, k] times w [k, n], k cut on all levels: everybody has a partial sum of y.
struct PartialProduct {
  explicit PartialProduct(std::shared_ptr<const Cluster> on_cluster, std::int64_t rows,
                          std::int8_t kept)
      : cluster(std::move(on_cluster)) {
    GraphBuilder builder("product");
    const auto tensor = [](std::int64_t a, std::int64_t b) {
      return TensorSpec{.shape = {a, b}, .dtype = DType::kFloat32};
    };
    const auto x = builder.add({.name = "x", .type = "input"}, {tensor(rows, 960)});
    const auto w = builder.add({.name = "w", .type = "parameter"}, {tensor(960, 1000)});
    builder.add({.name = "y", .type = "MatMul", .inputs = {x[0], w[0]}}, {tensor(rows, 1000)});
    graph = std::make_shared<const Graph>(std::move(builder).build());
    on = workers_on(*compile(graph, cluster));
    const auto all = [&](std::int8_t cut) { return Cuts(on->workers.levels(), cut); };
    plan = {.method = "test",
            .workers = on->workers,
            .tensors = {all(1), all(0), all(kept)},
            .ops = {all(kUncut), all(kUncut), all(2)}};
    Network network(on->workers, *cluster, on->devices);
    std::vector<std::string> names;
    for (const DeviceId device : on->devices) names.push_back(cluster->device(device).name);
    const LoweredGraph lowered = lower(*graph, Descriptions(*graph), plan, names, &network);
    count(lowered);
  }

  void count(const LoweredGraph& lowered) {
    moved = lowered.moved;
    for (TensorId t = 0; t < lowered.graph.num_tensors(); ++t) {
      const Worker from = lowered.worker_of[lowered.graph.producer(t)];
      std::map<Worker, bool> sent;
      for (const OpId reader : lowered.graph.consumers(t)) {
        const Worker to = lowered.worker_of[reader];
        if (to == from || sent[to]) continue;
        sent[to] = true;
        const Link* link = cluster->link(on->devices[from], on->devices[to]);
        by_channel[cluster->channel_name(link->channel)] += lowered.graph.bytes(t);
        total += lowered.graph.bytes(t);
      }
    }
  }

  std::shared_ptr<const Cluster> cluster;
  std::shared_ptr<const Graph> graph;
  std::optional<WorkerDevices> on;
  Plan plan;
  std::map<std::string, Bytes> by_channel;
  Bytes moved = 0;
  Bytes total = 0;
};

void expect_near_share(Bytes found, double expected, const std::string& what) {
  EXPECT_NEAR(static_cast<double>(found), expected, 0.02 * expected + 1) << what;
}

// Reduced so that all have it: twice (n-1)/n of it for every device within its machine, and for
// every machine among machines.
TEST(Collectives, what_everybody_gets_was_added_up_within_the_machines) {
  for (const std::vector<int>& sizes :
       std::vector<std::vector<int>>{{8, 8}, {4, 4, 4, 4}, {8}, {3, 3}, {2, 2, 2}, {6, 6, 6}}) {
    const std::string shape = fmt::format("{} machines of {}", sizes.size(), sizes[0]);
    const PartialProduct product(machines(sizes, 1'000'000'000), 4320, kUncut);
    const double bytes = 4320 * 1000 * 4;
    EXPECT_EQ(product.moved, product.total) << shape;
    const auto machines_count = static_cast<double>(sizes.size());
    const auto devices = static_cast<double>(sizes[0]);
    for (const auto& [channel, sent] : product.by_channel) {
      const double parts = channel.starts_with("machine ") ? machines_count : devices;
      expect_near_share(sent, 2 * bytes * (parts - 1) / parts, shape + ", " + channel);
    }
    EXPECT_EQ(product.by_channel.size(), sizes.size() * static_cast<std::size_t>(sizes[0]) +
                                             (sizes.size() > 1 ? sizes.size() : 0));
  }
}

// Kept in parts it is not gathered.
TEST(Collectives, what_is_kept_in_parts_is_reduced_alone) {
  const PartialProduct product(machines({8, 8}, 1'000'000'000), 4320, 0);
  const double bytes = 4320 * 1000 * 4;
  for (const auto& [channel, sent] : product.by_channel) {
    const double parts = channel.starts_with("machine ") ? 2 : 8;
    expect_near_share(sent, bytes * (parts - 1) / parts, channel);
  }
}

// Machines of unequal size are no levels. A ring passes between them twice, both ways.
TEST(Collectives, machines_of_unequal_size_are_passed_in_a_ring) {
  const PartialProduct product(machines({3, 5}, 1'000'000'000), 4320, kUncut);
  const double bytes = 4320 * 1000 * 4;
  expect_near_share(product.by_channel.at("machine 0"), 2 * bytes * 7 / 8, "machine 0");
  expect_near_share(product.by_channel.at("machine 1"), 2 * bytes * 7 / 8, "machine 1");
}

// Shared channels are used level by level; channels of one's own, all at once.
TEST(Collectives, the_way_depends_on_the_links) {
  const auto cluster = machines({8}, 1, 20'000);
  const PartialProduct product(cluster, 16, kUncut);
  Network network(product.on->workers, *cluster, product.on->devices);
  EXPECT_EQ(network.stages(0b111, 64, Exchange::kReduce).size(), 3U);  // 3 latencies instead of 7
  EXPECT_EQ(network.stages(0b111, 10'000'000'000, Exchange::kReduce).size(),
            3U);  // as much, in fewer transfers
  const auto pairs = [](Nanoseconds latency) {
    ClusterSpec spec{.name = "pairs", .kinds = {}, .devices = {}, .links = {}};
    for (int i = 0; i < 8; ++i) {
      spec.devices.push_back({.name = fmt::format("gpu{}", i), .kind = "v100", .memory = 1 << 30});
    }
    spec.links.push_back({.bandwidth = 1'000'000'000, .latency = latency});
    return std::make_shared<const Cluster>(std::move(spec));
  };
  // Where every pair has a channel of its own, all at once is soonest whatever the size.
  const auto linked = pairs(1000);
  Network flat(product.on->workers, *linked, product.on->devices);
  EXPECT_TRUE(flat.is_flat());
  EXPECT_EQ(flat.stages(0b111, 64, Exchange::kReduce).size(), 1U);
  EXPECT_EQ(flat.stages(0b111, 1 << 30, Exchange::kReduce).size(), 1U);
}

// Little is sent at once, since every stage begins with the starting of kernels; much goes in
// stages, which send less between machines.
TEST(Collectives, the_way_changes_with_the_size) {
  const auto cluster = machines({4, 4}, 1'000'000'000);
  const PartialProduct product(cluster, 16, kUncut);
  Network network(product.on->workers, *cluster, product.on->devices);
  const LevelSet all = level_set(product.on->workers.levels()) - 1;
  ASSERT_FALSE(network.is_flat());
  EXPECT_EQ(network.stages(all, 64, Exchange::kReduce).size(), 1U);
  EXPECT_GT(network.stages(all, 100'000'000, Exchange::kReduce).size(), 1U);
}

// In the divided graph, too: the bytes on the machines' channels are those of all at once, or those
// that were added up before.
TEST(Collectives, small_reductions_are_lowered_in_one_stage) {
  const auto between = [](std::int64_t rows) {
    const PartialProduct product(machines({4, 4}, 20'000'000'000), rows, 0);
    const auto found = product.by_channel.find("machine 0");
    return static_cast<double>(found->second) / static_cast<double>(rows * 1000 * 4);
  };
  EXPECT_NEAR(between(8), 2, 0.01)
      << "of four partial results, the half that the other machine keeps";
  EXPECT_NEAR(between(80'000), 0.5, 0.01) << "of their sum";
}

// On links that carry any number of transfers at once a ring still goes round step by step.
TEST(Collectives, a_ring_over_unlimited_links_takes_all_its_steps) {
  ClusterSpec spec{.name = "ring", .kinds = {}, .devices = {}, .links = {}};
  constexpr int kDevices = 5;
  for (int i = 0; i < kDevices; ++i) {
    spec.devices.push_back(
        {.name = fmt::format("gpu{}", i), .kind = "v100", .memory = Bytes{1} << 36});
  }
  // Neighbours are near, and all others far from each other.
  spec.links.push_back({.bandwidth = 1'000'000, .channel = std::string(kUnlimitedChannel)});
  for (int i = 0; i < kDevices; ++i) {
    spec.links.push_back({.from = fmt::format("gpu{}", i),
                          .to = fmt::format("gpu{}", (i + 1) % kDevices),
                          .bandwidth = 1'000'000'000,
                          .channel = std::string(kUnlimitedChannel)});
  }
  const auto cluster = std::make_shared<const Cluster>(std::move(spec));
  const Workers workers({kDevices});
  const std::vector<DeviceId> devices{0, 1, 2, 3, 4};
  Network network(workers, *cluster, devices);
  const double bytes = 1000 * 1000 * 4;
  ASSERT_TRUE(network.stages(0b1, static_cast<Bytes>(bytes), Exchange::kReduce).front().ring);
  Traffic traffic(workers, *cluster, devices);
  const tdl::Region whole{{0, 1000}, {0, 1000}};
  const Cuts uncut(1, kUncut);
  Spread partial = spread_of(whole, uncut, workers);
  partial.roles.assign(1, LevelRole::kPartial);
  const Spread reduced = spread_of(whole, Cuts(1, 0), workers);
  // Four steps of a fifth each, at 1 ns a byte.
  EXPECT_NEAR(static_cast<double>(traffic.to_keep(partial, reduced, reduced, 4)), 0.8 * bytes,
              0.01 * bytes);
}

// The costs of searches are those of the divided graph: the time of the busiest channel of each
// stage.
TEST(Collectives, searches_count_the_stages) {
  const auto cluster = machines({8, 8}, 1'000'000'000);
  const PartialProduct product(cluster, 4320, kUncut);
  const Workers& workers = product.on->workers;
  Traffic traffic(workers, *cluster, product.on->devices);
  const tdl::Region whole{{0, 4320}, {0, 1000}};
  const Cuts uncut(workers.levels(), kUncut);
  Spread partial = spread_of(whole, uncut, workers);
  partial.roles.assign(workers.levels(), LevelRole::kPartial);
  const Spread kept = spread_of(whole, uncut, workers);
  const Spread reduced = spread_of(whole, cuts_for_reduction(whole, uncut, workers), workers);
  const double bytes = 4320 * 1000 * 4;
  const double between = 2 * bytes / 2;           // at 1 ns a byte
  const double within = 2 * bytes * 7 / 8 / 100;  // at 100 bytes a ns
  EXPECT_NEAR(static_cast<double>(traffic.to_keep(partial, reduced, kept, 4)), between + within,
              0.02 * (between + within));
  EXPECT_NEAR(static_cast<double>(traffic.to_read(kept.regions, reduced, 4)),
              (between + within) / 2, 0.02 * between);
}

// Pairs in pairs of pairs, all on one bus: what moves takes as long as its bytes do on the links,
// whatever the order.
std::shared_ptr<const Cluster> nested_pairs() {
  ClusterSpec spec{.name = "pairs", .kinds = {}, .devices = {}, .links = {}};
  for (int i = 0; i < 8; ++i) {
    spec.devices.push_back(
        {.name = fmt::format("gpu{}", i), .kind = "v100", .memory = Bytes{1} << 36});
  }
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      if (a == b) continue;
      const std::int64_t speed = a / 2 == b / 2 ? 100 : a / 4 == b / 4 ? 10 : 1;
      spec.links.push_back({.from = fmt::format("gpu{}", a),
                            .to = fmt::format("gpu{}", b),
                            .bandwidth = speed * 1'000'000'000,
                            .channel = "bus"});
    }
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

// Products whose levels are parts, partial results or copies in every combination, kept in every
// way: no region is counted twice, and none is left out.
TEST(Collectives, searches_count_what_the_divided_graph_sends) {
  const auto cluster = nested_pairs();
  PartialProduct product(cluster, 1024, kUncut);
  const PartitionInput input(*product.graph);
  const Workers& workers = product.on->workers;
  ASSERT_EQ(workers.levels(), 3U);
  Traffic traffic(workers, *cluster, product.on->devices);
  PartitionProblem problem(input, traffic);
  std::vector<std::string> names;
  for (const DeviceId device : product.on->devices) names.push_back(cluster->device(device).name);
  Rng rng(1);
  int staged = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto cuts = [&](std::size_t choices) {
      Cuts result;
      for (int level = 0; level < 3; ++level) {
        result.push_back(static_cast<std::int8_t>(static_cast<int>(rng.below(choices)) - 1));
      }
      return result;
    };
    Plan plan = product.plan;
    // Partial results on many levels more often than not.
    plan.ops[2] = trial % 2 == 0 ? Cuts(3, 2) : cuts(4);
    if (trial % 4 == 2) plan.ops[2][rng.below(3)] = kUncut;
    for (Cuts& tensor : plan.tensors) tensor = cuts(3);
    Network network(workers, *cluster, product.on->devices);
    const LoweredGraph lowered = lower(*product.graph, input.descriptions, plan, names, &network);
    double time = 0;
    for (TensorId t = 0; t < lowered.graph.num_tensors(); ++t) {
      const Worker from = lowered.worker_of[lowered.graph.producer(t)];
      std::set<Worker> to;
      for (const OpId reader : lowered.graph.consumers(t)) to.insert(lowered.worker_of[reader]);
      to.erase(from);
      for (const Worker each : to) {
        time += network.link(from, each).ns_per_byte * static_cast<double>(lowered.graph.bytes(t));
      }
    }
    staged += network.stages(0b111, 4'096'000, Exchange::kReduce).size() > 1 ? 1 : 0;
    std::vector<Cuts> tensors(input.classes.num_tensors);
    for (TensorId t = 0; t < plan.tensors.size(); ++t) {
      tensors[input.classes.of_tensor[t]] = plan.tensors[t];
    }
    const auto counted =
        static_cast<double>(problem.op_cost(input.classes.of_op[2], plan.ops[2], tensors));
    EXPECT_NEAR(counted, time, 0.002 * time + 4)
        << "trial " << trial << ", op " << ::testing::PrintToString(plan.ops[2]) << ", kept "
        << ::testing::PrintToString(plan.tensors);
  }
  EXPECT_EQ(staged, 300);
}

// Equal links, one for every pair; what was measured is neither what they say nor a multiple.
CollectiveTimes measured_among_four() {
  CollectiveTimes times;
  times.add(Collective::kReduceScatter, 4, 1, 1'000'000, 3000);
  times.add(Collective::kReduceScatter, 4, 1, 5'000'000, 7000);
  times.add(Collective::kAllGather, 4, 1, 4'000'000, 2000);
  return times;
}

TEST(Collectives, measured_ones_take_what_they_took) {
  ClusterSpec spec{.name = "four", .kinds = {}, .devices = {}, .links = {}};
  for (int i = 0; i < 4; ++i) {
    spec.devices.push_back(
        {.name = fmt::format("gpu{}", i), .kind = "v100", .memory = Bytes{1} << 36});
  }
  spec.links.push_back({.bandwidth = 1'000'000'000, .latency = 1000});
  const auto cluster = std::make_shared<const Cluster>(std::move(spec));
  const PartialProduct product(cluster, 1000, kUncut);  // 4 MB
  const Workers& workers = product.on->workers;
  const auto times = std::make_shared<const CollectiveTimes>(measured_among_four());
  Traffic traffic(workers, *cluster, product.on->devices, times.get());
  const tdl::Region whole{{0, 1000}, {0, 1000}};
  const Cuts uncut(workers.levels(), kUncut);
  Spread partial = spread_of(whole, uncut, workers);
  partial.roles.assign(workers.levels(), LevelRole::kPartial);
  const Spread kept = spread_of(whole, uncut, workers);
  const Spread reduced = spread_of(whole, cuts_for_reduction(whole, uncut, workers), workers);
  EXPECT_EQ(traffic.to_keep(partial, reduced, reduced, 4), 6'000'000);
  EXPECT_EQ(traffic.to_read(kept.regions, reduced, 4), 2'000'000);
  EXPECT_EQ(traffic.to_keep(partial, reduced, kept, 4), 8'000'000);
  // Simulated likewise, but for computing and the starting of what adds up and puts together.
  const PartitionInput input(*product.graph);
  const auto step = [&](const PlanCosts& costs) {
    return static_cast<double>(
        evaluate_plan(input, product.plan, cluster, product.on->devices, costs).value.step);
  };
  const double linked = 2 * (1e6 + 1000);  // a quarter from each to each, on a link of its own
  EXPECT_NEAR(step({.collectives = times}) - step({}), 8e6 - linked, 0.02 * 8e6);
  const PlanOutcome outcome =
      evaluate_plan(input, product.plan, cluster, product.on->devices, {.collectives = times});
  EXPECT_EQ(outcome.moved, 2 * 3 * 1000 * 1000 * 4) << "bytes are what they are";
}

// For other numbers of devices the links decide.
TEST(Collectives, what_was_not_measured_goes_by_the_links) {
  const auto cluster = machines({4, 4}, 1'000'000'000);
  const PartialProduct product(cluster, 16, kUncut);
  CollectiveTimes times;
  times.add(Collective::kReduceScatter, 4, 1, 16'000'000, 500);
  Network network(product.on->workers, *cluster, product.on->devices, &times);
  const auto& stages = network.stages(0b111, 16'000'000, Exchange::kReduce);
  ASSERT_GE(stages.size(), 2U);
  EXPECT_FALSE(stages.front().measured) << "between the machines";
  EXPECT_EQ(stages.back().levels, 0b110U);
  EXPECT_TRUE(stages.back().measured) << "four within each";
  EXPECT_EQ(network.unmeasured(), std::set<int>{2});
}

// What both machines make alike is reduced in each by itself, and nothing passes the network.
TEST(Collectives, groups_that_make_the_same_reduce_it_themselves) {
  const auto cluster = machines({4, 4}, 1'000'000'000);
  const PartialProduct product(cluster, 16, kUncut);
  const Network network(product.on->workers, *cluster, product.on->devices);
  using enum LevelRole;
  const auto levels = [&](std::vector<LevelRole> roles) {
    return network.levels_to_reduce({{}, std::move(roles)});
  };
  EXPECT_EQ(levels({kSame, kPartial, kPartial}), 0b110U);
  EXPECT_EQ(levels({kPartial, kPartial, kPartial}), 0b111U);
  EXPECT_EQ(levels({kParts, kPartial, kPartial}), 0b111U);
  EXPECT_EQ(levels({kPartial, kSame, kSame}), 0b111U) << "each device reduces a part";
}

// Links of two speeds in one machine are no two machines: a table that says nothing of machines
// holds for as many devices, wherever they are.
TEST(Collectives, tables_without_machines_go_by_the_number_of_devices) {
  const auto cluster = machines({4, 4}, 1'000'000'000);
  const PartialProduct product(cluster, 16, kUncut);
  CollectiveTimes times;
  times.add(Collective::kReduceScatter, 8, CollectiveTimes::kAnyMachines, 16'000'000, 500);
  Network network(product.on->workers, *cluster, product.on->devices, &times);
  const auto& stages = network.stages(0b111, 16'000'000, Exchange::kReduce);
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_TRUE(stages[0].measured);
  EXPECT_TRUE(network.unmeasured().empty());
  network.stages(0b111, 16'000'000, Exchange::kGather);
  EXPECT_FALSE(network.unmeasured().empty()) << "gatherings were not measured";
}

// What two machines keep in halves, and all of their devices need: each fetches a part of the other
// half, and they exchange it.
TEST(Collectives, what_lies_in_another_machine_is_fetched_once) {
  const auto cluster = machines({4, 4}, 1'000'000'000);
  const PartialProduct product(cluster, 16, kUncut);
  const Workers& workers = product.on->workers;
  Traffic traffic(workers, *cluster, product.on->devices);
  const tdl::Region whole{{0, 4096}, {0, 100}};
  const Spread halves = spread_of(whole, {0, kUncut, kUncut}, workers);
  const Spread needed = spread_of(whole, Cuts(3, kUncut), workers);
  const double half = 4096 * 100 * 4 / 2.0;
  EXPECT_NEAR(static_cast<double>(traffic.to_read(needed.regions, halves, 4)),
              half + half * 3 / 4 / 100, 0.02 * half);
}

}  // namespace
}  // namespace emplace
